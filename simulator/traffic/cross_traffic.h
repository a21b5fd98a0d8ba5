// Traffic of other users on the simulated links: endless CUBIC flows and on/off sources between the
// hosts of ranks, from a scenario's cross_traffic entries.
//
// All packets are Traffic::cross. Each flow or source begins at a time drawn from its entry's
// random stream, so that they do not start in step. The sources of one host send at most 100 Gb/s
// together, even if no link is limited. A source never ends. A crash or pause of the ranks at its
// two hosts does not stop it, but a partition between them stops its packets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "engine/event_queue.h"
#include "leeway/status.h"
#include "network/network.h"
#include "scenario.pb.h"
#include "tcp/tcp_flow.h"
#include "traffic/on_off_source.h"
#include "workload/workload.h"

namespace leeway::sim {

class CrossTraffic final : private PacketReceiver, private TcpHost {
 public:
  // Makes the sources of `scenario`, which must be valid, and attaches them to the network. `queue`
  // and `network` must outlive the result.
  static Result<std::unique_ptr<CrossTraffic>> make(const scenario::Scenario& scenario,
                                                    std::uint64_t seed, EventQueue& queue,
                                                    Network& network);

  // Starts all entries. Call it once.
  void start(Instant now);
  // Handles an event of EventKind::traffic.
  void on_event(const Event& event);

  // Returns the bytes of data that have arrived for an entry, given by its index in the scenario.
  // Bytes of a flow count once, when they are in order.
  std::uint64_t delivered_bytes(std::size_t entry) const { return entries_[entry].delivered_bytes; }
  // Returns the mean rates since start(): "cross[0].goodput_mbps" and so on, one for each entry.
  std::vector<Measure> measures(Instant now) const;

 private:
  enum class Step : std::uint64_t { begin = 0, wake_sender = 1, wake_receiver = 2, emit = 3 };

  struct Entry {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t delivered_bytes = 0;
    std::vector<std::int64_t> offsets_ns;  // from start() to the begin of each of its sources
    std::uint32_t first = 0;               // number of the first of them
  };
  // A TCP flow or an on/off source.
  struct Source {
    std::uint32_t entry = 0;
    std::unique_ptr<TcpFlow> flow;
    std::unique_ptr<OnOffSource> on_off;
  };

  CrossTraffic(EventQueue& queue, Network& network) : queue_(queue), network_(network) {}

  void add_flows(const scenario::CrossTraffic& options, std::uint64_t seed, std::uint32_t entry);
  void add_on_off(const scenario::CrossTraffic& options, std::uint64_t seed, std::uint32_t entry);
  void begin(Instant now, std::uint32_t number);
  void emit(Instant now, std::uint32_t number);
  void push(Instant at, std::uint32_t number, Step step);

  // PacketReceiver
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override;
  // TcpHost
  void send_packet(Instant now, const Packet& packet) override;
  Instant line_free_at(Instant now, std::uint32_t rank) override;
  void wake_at(Instant at, std::uint32_t flow, TcpEnd end) override;
  void on_delivered(Instant now, std::uint32_t flow, std::uint64_t bytes) override;

  EventQueue& queue_;
  Network& network_;
  std::vector<Entry> entries_;
  std::vector<Source> sources_;        // by number: a flow's number in its packets
  std::vector<Instant> line_free_at_;  // by rank, as far as one is the place of an entry
  Instant started_{0};
};

}  // namespace leeway::sim
