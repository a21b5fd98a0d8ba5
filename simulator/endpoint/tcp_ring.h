// A ring over TCP at every rank. It shows what collectives cost if the transport recovers every
// loss.
//
// Each rank has one connection to its successor, which all calls use. A rank sends a slice only if
// its successor has posted a receive for it; receives are posted two slices ahead, as in Gloo.
// Notices of posted receives travel back over a connection of their own. Summing takes no time. If
// something has not arrived at the call's deadline, the call fails at every rank that still waits;
// the error names the neighbour for which the rank waits. The connections of a rank whose call
// failed are then torn down. The next call that needs them establishes new ones without a
// handshake.
//
// The ring reads three fields of the scenario: ranks, operation.delivery.deadline_ms and
// operation.datagram_bytes (packets are as long as the core's). It draws no random numbers.
// Segments are Traffic::data, acknowledgements and notices Traffic::control.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "endpoint/endpoints.h"
#include "endpoint/ring_plan.h"
#include "endpoint/uplink.h"
#include "network/network.h"
#include "scenario.pb.h"
#include "tcp/tcp_flow.h"
#include "topology/topology.h"

namespace leeway::sim {

class TcpRing final : public Endpoints, private PacketReceiver, private TcpHost {
 public:
  // Attaches the ring to the network for data and control. All arguments must outlive it. The
  // scenario must be valid.
  static Result<std::unique_ptr<TcpRing>> make(const scenario::Scenario& scenario,
                                               const Topology& topology, EventQueue& queue,
                                               Network& network);

  // Supports all_reduce, reduce_scatter, all_gather, and broadcast from rank 0. Other calls end at
  // once with kUnsupported.
  void submit(Instant now, std::uint32_t rank, const Call& call, Client& client) override;
  void on_event(const Event& event) override;
  void pause(Instant now, std::uint32_t rank) override;
  void resume(Instant now, std::uint32_t rank) override;
  void kill(Instant now, std::uint32_t rank) override;

  // Returns the present connection from `rank` to its successor.
  const TcpFlow& connection(std::uint32_t rank) const { return *lines_[rank].data; }

 private:
  enum class Step : std::uint64_t { begin = 0, deadline = 1, wake_sender = 2, wake_receiver = 3 };

  // The two connections between a rank and its successor.
  struct Line {
    std::unique_ptr<TcpFlow> data;
    std::unique_ptr<TcpFlow> notices;  // connection back, for notices of posted receives
    std::uint32_t generation = 0;
    // True before the line is established, and after a rank that gave up a call has closed it.
    bool broken = false;
    std::uint64_t given_up = 0;      // calls up to this one fail at both ends
    std::uint64_t notice_bytes = 0;  // bytes that were delivered and are not a whole notice yet
    std::uint64_t posted = 0;        // receives that the sender knows of and has not used
    std::uint64_t bytes = 0;         // bytes that were delivered and are not a whole slice yet
  };
  struct Node {
    Call call;
    Client* client = nullptr;  // client of the open call
    RingPlan plan;
    std::uint64_t calls = 0;  // submitted
    Instant submitted{0};
    Instant deadline{0};
    std::uint64_t sent = 0;      // slices given to the connection
    std::uint64_t received = 0;  // whole slices
    std::uint64_t posted = 0;    // receives
    bool begun = false;
    bool paused = false;
    bool dead = false;
    std::vector<Packet> socket;  // packets that came while the rank was paused
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_sent_before = 0;  // bytes sent before the open call
    std::uint64_t repaired_before = 0;
    Uplink uplink;
  };

  TcpRing(EventQueue& queue, Network& network) : queue_(queue), network_(network) {}

  // PacketReceiver
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override;
  // TcpHost
  void send_packet(Instant now, const Packet& packet) override;
  void wake_at(Instant at, std::uint32_t flow, TcpEnd end) override;
  Instant line_free_at(Instant now, std::uint32_t rank) override;
  void on_delivered(Instant now, std::uint32_t flow, std::uint64_t bytes) override;

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t successor(std::uint32_t rank) const { return (rank + 1) % ranks(); }
  std::uint32_t predecessor(std::uint32_t rank) const { return (rank + ranks() - 1) % ranks(); }
  TcpFlow* find_flow(std::uint32_t number);

  void begin(Instant now, std::uint32_t rank);
  void establish(Instant now, std::uint32_t line);
  void post(Instant now, std::uint32_t rank, std::uint64_t receives);
  void pump(Instant now, std::uint32_t rank);
  void take_slices(std::uint32_t rank);
  void hand_in(Instant now, const Packet& packet);
  void on_wake(Instant now, std::uint32_t flow, TcpEnd end);
  void wake_all(Instant now, std::uint32_t rank);
  void expire(Instant now, std::uint32_t rank);
  void tear_down(std::uint32_t line, std::uint64_t call);
  // Returns true if the rank's open call will fail because a neighbour has failed it.
  bool given_up(std::uint32_t rank) const;
  void finish(Instant now, std::uint32_t rank, const Status& status);

  EventQueue& queue_;
  Network& network_;
  Duration deadline_{0};
  std::vector<TcpOptions> options_;  // options of the line from a rank
  std::vector<Line> lines_;          // by the sending rank
  std::vector<Node> nodes_;
};

}  // namespace leeway::sim
