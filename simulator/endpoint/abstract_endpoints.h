// The shipping protocol's arithmetic without its packets' contents, for groups of a thousand ranks
// and more: an ordered pair of ranks costs 128 bytes and a bit per packet.
//
// What is as in src/protocol and src/collective: sizes and numbers of packets, rotation of
// destinations and of starting packets, eager packets and gates, credit and reports, ENDs, quiet
// times, time-outs, copies of control datagrams on lossy links, repair, settling by class and
// deadline, streaming of the spread half chunk by chunk, confirmations, flows that outlive their
// caller. Control datagrams are packets of their own and may be lost.
//
// What is simpler:
//   - a packet's place in its flow is not permuted inside its chunk;
//   - a repair request is one statement "what I lack", however many datagrams carry it, and is
//     answered from what the receiver lacks when the answer is sent;
//   - a round trip is measured for one datagram at a time;
//   - a rank reports every second datagram at most: a core with a window of less than 8 datagrams
//     reports each, reports included, for ever;
//   - Operation.inject is refused;
//   - the window is at most 16,384 datagrams, and an answer's attempt counts modulo 256;
//   - age caps of replicas and Codec::automatic's changes of mind are not modelled (the codec that
//     it starts with stays).
// How near that comes: tests/unit/sim_abstract, which runs the same cases through both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "endpoint/abstract_rank.h"
#include "endpoint/endpoints.h"
#include "engine/event_queue.h"
#include "network/huge_pages.h"
#include "network/network.h"
#include "scenario.pb.h"
#include "topology/topology.h"

namespace leeway::sim {

struct AbstractCounters {
  std::uint64_t data_sent = 0;
  std::uint64_t repairs_sent = 0;
  std::uint64_t control_sent = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t late = 0;
  std::uint64_t early_dropped = 0;
  std::uint64_t socket_losses = 0;
};

class AbstractEndpoints final : public Endpoints, private PacketReceiver {
 public:
  // Attaches itself to the network for data and control. Everything referred to outlives it. The
  // scenario is valid.
  static Result<std::unique_ptr<AbstractEndpoints>> make(const scenario::Scenario& scenario,
                                                         std::uint64_t seed,
                                                         const Topology& topology,
                                                         EventQueue& queue, Network& network);

  void submit(Instant now, std::uint32_t rank, const Call& call, Client& client) override;
  void on_event(const Event& event) override;
  void pause(Instant now, std::uint32_t rank) override;
  void resume(Instant now, std::uint32_t rank) override;
  void kill(Instant now, std::uint32_t rank) override;

  const AbstractCounters& counters() const { return counters_; }
  // No live rank has anything open, confirmations included.
  bool idle() const;

 private:
  // A flow that is sent: of the open call, or lingering.
  struct Outgoing {
    AbstractSendFlow& flow;
    const AbstractPlan& plan;
    int half;
    std::uint32_t opened;
  };
  struct TrainSent {
    std::uint32_t packets = 0;
    bool closed = false;  // by a short packet, behind which no other fits
  };
  enum class Step : std::uint64_t { link = 0, writable = 1, deadline = 2 };

  AbstractEndpoints(EventQueue& queue, Network& network) : queue_(queue), network_(network) {}
  void set_up(const scenario::Scenario& scenario, const Topology& topology);
  AbstractLink& link(std::uint32_t rank, std::uint32_t peer) {
    return links_[std::size_t{rank} * size_ + peer];
  }
  // Soon to be looked at: of 128 MB for a thousand ranks, little is in a cache.
  void prefetch(std::uint32_t rank, std::uint32_t peer) const {
    const AbstractLink& soon = links_[std::size_t{rank} * size_ + peer];
    __builtin_prefetch(&soon.last_arrival_ns, 1);
    __builtin_prefetch(&soon.next_sequence, 1);
  }
  std::uint32_t after(std::uint32_t rank, std::uint32_t step) const {
    const std::uint32_t peer = rank + step;
    return peer >= size_ ? peer - size_ : peer;
  }

  // abstract_endpoints.cc: calls
  const AbstractPlan& plan_of(const Call& call);
  std::uint32_t start_of(std::uint32_t opened, std::uint32_t owner, std::uint32_t packets) const;
  void keep_lingering(std::uint32_t rank);
  void open(Instant now, std::uint32_t rank);
  void open_flows(Instant now, std::uint32_t rank, std::uint32_t peer);
  void announce(Instant now, std::uint32_t rank);
  void replay_early(Instant now, std::uint32_t rank);
  void settle_send(std::uint32_t rank, std::uint32_t peer, int half);
  void finish_receive(Instant now, std::uint32_t rank, std::uint32_t peer, int half);
  bool may_go(const AbstractRank& node) const;
  void advance(std::uint32_t rank);
  void finish(std::uint32_t rank, const Status& status);
  void release(std::uint32_t rank);
  void tell(Instant now, std::uint32_t rank);
  // Everything that follows from what happened: what is due is sent, the client hears of it.
  void follow_up(Instant now, std::uint32_t rank);

  // abstract_receive.cc
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override;
  void expect(const Packet& packet) const override;
  void handle(Instant now, const Packet& packet);
  void on_data(Instant now, std::uint32_t rank, std::uint32_t from, AbstractWord word);
  void accept(Instant now, std::uint32_t rank, std::uint32_t from, AbstractWord word);
  void keep_early(std::uint32_t rank, std::uint32_t from, AbstractWord word);
  void on_peer_opened(std::uint32_t rank, std::uint32_t peer, std::uint32_t opened);
  void confirm_below(std::uint32_t rank, std::uint32_t peer, std::uint32_t opened);
  void on_report(Instant now, std::uint32_t rank, std::uint32_t from, AbstractWord word);
  void on_peer_left(Instant now, std::uint32_t rank, std::uint32_t peer);
  void on_end(Instant now, std::uint32_t rank, std::uint32_t from, AbstractWord word);
  void on_repair(std::uint32_t rank, std::uint32_t from, AbstractWord word);
  std::span<AbstractLingering> lingering_to(std::uint32_t rank, std::uint32_t peer);
  void confirm_lingering(std::uint32_t rank, AbstractLingering& entry);

  // abstract_send.cc
  void queue_control(std::uint32_t rank, std::uint32_t peer);
  void queue_data(std::uint32_t rank, std::uint32_t peer);
  void queue_report(std::uint32_t rank, std::uint32_t peer);
  void pump(Instant now, std::uint32_t rank);
  bool uplink_has_room(Instant now, std::uint32_t rank);
  bool poll_control(Instant now, std::uint32_t rank);
  bool poll_data(Instant now, std::uint32_t rank);
  bool write_control(Instant now, std::uint32_t rank, std::uint32_t peer);
  static int copies_to(const AbstractLink& to);
  std::uint32_t next_sequence(Instant now, AbstractLink& to) const;
  void write_report(Instant now, std::uint32_t rank, std::uint32_t peer);
  void write_repair_request(Instant now, std::uint32_t rank, std::uint32_t peer, int half);
  void write_end(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out);
  void repeat_end(Instant now, std::uint32_t rank, std::uint32_t peer, AbstractSendFlow& flow);
  void send_control(Instant now, std::uint32_t rank, std::uint32_t peer, AbstractWord word,
                    std::size_t bytes);
  bool fill_from_link(Instant now, std::uint32_t rank, std::uint32_t peer);
  bool fill_from_flow(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out);
  TrainSent send_first_pass(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out,
                            std::uint32_t packets_max);
  TrainSent send_repairs(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out,
                         std::uint32_t packets_max);
  static bool is_short(Outgoing out, std::uint32_t rank, std::uint32_t peer, std::uint32_t index);
  void send_data(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out,
                 std::uint32_t index, bool last);
  void end_pass(Instant now, std::uint32_t rank, std::uint32_t peer, Outgoing out, bool room);
  std::uint32_t next_missing(std::uint32_t rank, std::uint32_t peer, Outgoing out) const;

  // abstract_timers.cc
  void arm(Instant now, std::uint32_t rank, std::uint32_t peer, Instant at);
  void wake_link(Instant now, std::uint32_t rank, std::uint32_t peer);
  void wake_receive(Instant now, std::uint32_t rank, std::uint32_t peer, int half);
  void wake_send(Instant now, std::uint32_t rank, std::uint32_t peer, AbstractSendFlow& flow);
  void ask_again(Instant now, std::uint32_t rank, std::uint32_t peer, int half);
  static bool needs_more(const AbstractHalf& half, std::uint32_t missing, std::uint32_t packets);
  static std::int64_t quiet_ns(const AbstractLink& link, const AbstractHalf& half);
  void on_deadline(Instant now, std::uint32_t rank, int half);
  void cut_phase(Instant now, std::uint32_t rank, int half);
  Status overdue(std::uint32_t rank) const;

  EventQueue& queue_;
  Network& network_;
  AbstractOperation operation_;
  std::uint64_t seed_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t window_ = 2;
  std::uint32_t report_every_ = 1;
  std::vector<AbstractRank> ranks_;
  std::vector<AbstractLink, HugePages<AbstractLink>> links_;
  std::vector<std::unique_ptr<AbstractPlan>> plans_;
  // The packet with which senders to an owner start, by call (modulo the size) and owner.
  struct Starts {
    std::uint32_t opened = 0;
    std::vector<std::uint32_t> by_owner;
  };
  std::vector<Starts> starts_;
  AbstractCounters counters_;
};

}  // namespace leeway::sim
