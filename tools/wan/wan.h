// The network between the ranks' devices: the simulator's network, with real packets at real times.
//
// It reads no clock and opens nothing. The caller brings each packet with its time of arrival, and
// calls run_until() when something is due; a PacketSink gets the packets that come out. Times are
// ns since the start and never go back. Nothing is allocated in a steady state.
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
  std::vector<PathMtu> path_mtus;  // if several apply, the last one is used
  bool tell_path_mtu = false;      // tells senders by ICMP; otherwise the path is a black hole
};

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // `due`: time at which the packet should come out. `damaged`: the network damaged the packet, and
  // its checksum shows that.
  virtual void deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool damaged) = 0;
};

// Numbers of packets in and out, and of packets that the laboratory refused. LinkReport has the
// packets that links lost.
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
  sim::LinkCounters counters;  // all packets of the laboratory are of kind 0, Traffic::data

  std::uint64_t offered() const { return counters.offered[0]; }
  std::uint64_t passed() const { return counters.passed[0]; }
  // Returns the number of packets that a loss model dropped.
  std::uint64_t random_loss() const {
    return counters.lost[0] - counters.queue_full - counters.queue_early;
  }
};

class Wan : private sim::PacketReceiver {
 public:
  // `sink` must outlive the result.
  static Result<std::unique_ptr<Wan>> make(const sim::scenario::Scenario& scenario,
                                           const WanOptions& options, PacketSink& sink);

  std::uint32_t ranks() const { return topology_.ranks(); }

  // Returns true if a packet that comes now must wait for the rank's uplink, so that its departure
  // does not depend on its arrival. Returns false if the rank's outgoing paths share no line.
  bool line_is_busy(Instant now, std::uint32_t rank) {
    const sim::LinkId line = topology_.uplink(rank);
    return line != sim::kArrived && network_->waiting_bytes(now, line) > 0;
  }

  // Takes a packet that came out of the rank's device.
  void take(Instant now, std::uint32_t rank, ByteSpan packet);

  void run_until(Instant now);

  // Returns a time before which no packet is due.
  Instant next_due() const { return events_.next_not_before(); }

  const WanCounters& counters() const { return counters_; }
  std::uint64_t under_way() const { return network_->under_way(sim::Traffic::data); }
  // Returns a report for each link that got packets.
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
