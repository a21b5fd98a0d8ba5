// The network between the ranks' devices: the simulator's, fed with real packets at real times.
//
// Reads no clock and opens nothing. The caller brings packets with the time at which they came,
// calls run_until() when something is due, and is told which packet comes out where. Times are ns
// since the start and never go back. Nothing is allocated in a steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/event_queue.h"
#include "ip_packet.h"
#include "leeway/status.h"
#include "network/network.h"
#include "network_plan.h"

namespace leeway::lab {

struct WanOptions {
  std::uint64_t seed = 1;
  Address first_address = 0;       // address of rank 0; the others follow
  std::vector<PathMtu> path_mtus;  // if several apply, the last one counts
  bool tell_path_mtu = false;      // tells senders by ICMP; otherwise the path is a black hole
};

// Receives the packets that come out of the network.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // `due`: when the packet should come out. `damaged`: the packet was damaged on its way, and its
  // checksum shows that.
  virtual void deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool damaged) = 0;
};

// Packets that the laboratory itself refused. Losses of links are in the network's counters.
struct WanCounters {
  std::uint64_t taken = 0;  // packets taken from a device
  std::uint64_t taken_bytes = 0;
  std::uint64_t delivered = 0;
  std::uint64_t delivered_bytes = 0;
  std::uint64_t too_long = 0;     // longer than the path's MTU
  std::uint64_t not_carried = 0;  // not IPv4, or to an address that no rank has
};

struct LinkReport {
  std::string name;
  std::uint64_t rate_bps = 0;  // 0: unlimited
  std::uint64_t offered = 0;
  std::uint64_t passed = 0;
  std::uint64_t bytes_passed = 0;
  std::uint64_t queue_full = 0;   // dropped, no room in the queue
  std::uint64_t queue_early = 0;  // dropped by RED or CoDel
  std::uint64_t random_loss = 0;  // lost by a loss model
  std::uint64_t marked = 0;       // with "congestion experienced"
  std::uint64_t queue_bytes_max = 0;
};

class Wan : private sim::PacketReceiver {
 public:
  // `sink` outlives it.
  static Result<std::unique_ptr<Wan>> make(const sim::scenario::Scenario& scenario,
                                           const WanOptions& options, PacketSink& sink);

  std::uint32_t ranks() const { return topology_.ranks(); }

  // Whether a packet that comes now would wait for the rank's line up anyway. Its departure then
  // does not depend on when it came. False where ways out have no line in common.
  bool line_is_busy(Instant now, std::uint32_t rank) {
    const sim::LinkId line = topology_.uplink(rank);
    return line != sim::kArrived && network_->waiting_bytes(now, line) > 0;
  }

  // A packet came out of a rank's device.
  void take(Instant now, std::uint32_t rank, ByteSpan packet);

  // Delivers what is due.
  void run_until(Instant now);

  // Nothing is due before this.
  Instant next_due() const { return events_.next_not_before(); }

  const WanCounters& counters() const { return counters_; }
  std::uint64_t under_way() const { return network_->under_way(sim::Traffic::data); }
  // Of the links that packets came to.
  std::vector<LinkReport> links() const;

 private:
  Wan(sim::Topology topology, const WanOptions& options, PacketSink& sink);

  void on_packet(Instant now, const sim::Packet& packet, ByteSpan payload) override;
  std::uint32_t path_mtu(Instant now, std::uint32_t from, std::uint32_t to) const;
  void refuse_too_long(Instant now, std::uint32_t rank, ByteSpan packet, std::uint32_t mtu);

  sim::Topology topology_;
  WanOptions options_;
  PacketSink* sink_;
  sim::EventQueue events_;
  std::unique_ptr<sim::Network> network_;
  WanCounters counters_;
  std::vector<std::byte> marked_;  // the marked packet that is being delivered
};

}  // namespace leeway::lab
