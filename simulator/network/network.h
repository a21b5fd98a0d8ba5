// Links in virtual time: packets go in at one rank and come out at another, later or never.
//
// Per link, in this order: queue and line (link/queue.h), losses, corruption, duplication, delays.
// All of it is decided when the packet enters the link, so a packet costs one event a link: its
// arrival at the far end. A link that keeps the order is a ring with one pending event, however
// many packets are under way on it.
//
// Deterministic: depends on topology, seed and the order of send() only. One run is one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/event_queue.h"
#include "engine/trace_hash.h"
#include "network/packet.h"
#include "network/payload_pool.h"
#include "topology/topology.h"

namespace leeway::sim {

// Event::kind of everything in a run: which part of it an event is for.
enum class EventKind : std::uint32_t {
  network = 0,   // Network::on_event
  endpoint = 1,  // Endpoints::on_event
  rank = 2,      // run/: a rank's compute time is over
  fault = 3,     // run/: a fault begins or ends
  traffic = 4,   // cross traffic
};

enum class PacketStep : std::uint8_t {
  sent = 0,         // entered the network
  delivered = 1,    // handed to its receiver
  duplicated = 2,   // a link made a copy, which is from now on a packet of its own (counts as sent)
  queue_full = 3,   // this and the following: lost
  queue_early = 4,  // RED or CoDel
  lost = 5,         // by a loss model
  blocked = 6,      // by a partition, or its rank is dead
};
inline constexpr int kPacketSteps = 7;
constexpr bool is_loss(PacketStep step) {
  return step >= PacketStep::queue_full;
}

// Whoever wants to watch: traces and checkers. `link` is kArrived where none is concerned.
class PacketObserver {
 public:
  virtual ~PacketObserver() = default;
  virtual void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                         ByteSpan payload) = 0;
};

class PacketReceiver {
 public:
  virtual ~PacketReceiver() = default;
  // `payload` is empty without one; corruption has been applied. Valid during the call.
  virtual void on_packet(Instant now, const Packet& packet, ByteSpan payload) = 0;
};

struct LinkCounters {
  std::array<std::uint64_t, kTrafficKinds>
      offered{};  // packets that came to the link, copies included
  std::array<std::uint64_t, kTrafficKinds> passed{};  // arrived at its far end
  std::array<std::uint64_t, kTrafficKinds> lost{};    // by queue or loss model
  std::array<std::uint64_t, kTrafficKinds> copied{};  // made by it
  std::uint64_t queue_full = 0;
  std::uint64_t queue_early = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
  std::uint64_t bytes_passed = 0;
  std::uint64_t queue_bytes_max = 0;
};

// Of the whole network, by kind of traffic. sent + copied = delivered + lost + under way (I1).
struct NetworkCounters {
  std::array<std::uint64_t, kTrafficKinds> sent{};
  std::array<std::uint64_t, kTrafficKinds> copied{};
  std::array<std::uint64_t, kTrafficKinds> delivered{};
  std::array<std::uint64_t, kTrafficKinds> lost{};
};

class Network {
 public:
  // `topology` and `queue` outlive the network. Payloads of up to `payload_bytes_max`.
  static Result<std::unique_ptr<Network>> make(const Topology& topology, std::uint64_t seed,
                                               EventQueue& queue, std::size_t payload_bytes_max);

  void attach(Traffic traffic, PacketReceiver& receiver);
  void observe(PacketObserver* observer);  // null: nobody; costs nothing then

  PayloadPool& payloads();

  // From now on packets between these ranks are lost, in this direction, also those under way
  // (counted when they would have arrived); or no longer. Calls nest: blocked twice must be
  // unblocked twice.
  void block(std::uint32_t from, std::uint32_t to);
  void unblock(std::uint32_t from, std::uint32_t to);

  // A packet enters. Its payload's holder is now the network. Sending to oneself is a broken
  // contract.
  void send(Instant now, const Packet& packet);

  // Bytes in the queue of a link, the packet on the line included; 0 for unlimited links. Endpoints
  // wait with sending while their uplink is full, as a socket would make them.
  std::uint64_t waiting_bytes(Instant now, LinkId link);

  // An event of EventKind::network is due.
  void on_event(const Event& event);

  const NetworkCounters& counters() const;
  const LinkCounters& link_counters(LinkId link) const;  // zeros for a link that no packet came to
  std::uint64_t under_way(Traffic traffic) const;

  // Over every step of every packet.
  const TraceHash& trace() const;
};

}  // namespace leeway::sim
