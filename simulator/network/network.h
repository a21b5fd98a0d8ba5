// Links in virtual time. Packets enter at one rank and leave at another, later or never.
//
// A packet passes on each link, in this order: queue and line (link/queue.h), losses, corruption,
// duplication, delays. All of this is decided when it enters the link, so a packet costs one event
// per link: its arrival at the far end. A link that keeps the order needs only one pending event
// for all its packets in flight.
//
// Results depend only on topology, seed and the order of send(). One run is one thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "engine/event_queue.h"
#include "engine/trace_hash.h"
#include "network/link_line.h"
#include "network/network_types.h"
#include "network/packet.h"
#include "network/packet_store.h"
#include "network/pair_tables.h"
#include "network/payload_pool.h"
#include "topology/topology.h"

namespace leeway::sim {

// The values of Event::kind: which part of a run handles an event.
enum class EventKind : std::uint32_t {
  network = 0,   // Network::on_event
  endpoint = 1,  // Endpoints::on_event
  rank = 2,      // run/: a rank's compute time is over
  fault = 3,     // run/: a fault begins or ends
  traffic = 4,   // cross traffic
  member = 5,    // run/: a member of a further communicator has something to do
};

// Interface for traces and checkers that watch packets. `link` is kArrived for steps outside links.
class PacketObserver {
 public:
  virtual ~PacketObserver() = default;
  virtual void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                         ByteSpan payload) = 0;
};

class PacketReceiver {
 public:
  virtual ~PacketReceiver() = default;
  // `payload` is empty if the packet has none, and valid during the call. In a corrupt packet the
  // wrong bit is already flipped.
  virtual void on_packet(Instant now, const Packet& packet, ByteSpan payload) = 0;
  // Announces a packet that comes soon, so that the receiver can fetch into the cache what it will
  // need. Not every packet is announced, so nothing else may depend on this call.
  virtual void expect(const Packet&) const {}
};

class Network {
 public:
  // `topology` and `queue` outlive the network. A payload has at most `payload_bytes_max` bytes.
  static Result<std::unique_ptr<Network>> make(const Topology& topology, std::uint64_t seed,
                                               EventQueue& queue, std::size_t payload_bytes_max);

  void attach(Traffic traffic, PacketReceiver& receiver) {
    receivers_[static_cast<std::size_t>(traffic)] = &receiver;
  }
  void observe(PacketObserver* observer) { observer_ = observer; }  // null removes it

  PayloadPool& payloads() { return payloads_; }

  // block() loses all packets from `from` to `to` until unblock(), also those in flight. A lost
  // packet is counted at the time at which it would have arrived. Calls nest: a pair that was
  // blocked twice must be unblocked twice.
  void block(std::uint32_t from, std::uint32_t to) { blocked_.block(from, to); }
  void unblock(std::uint32_t from, std::uint32_t to) { blocked_.unblock(from, to); }

  // From now on, packets from `from` to `to` that are longer than `bytes` are lost where they enter
  // the network. NarrowPairs::kAny allows all lengths. Shared packets always pass.
  void narrow(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    narrow_.set(from, to, bytes);
  }

  // From now on links do not lose, copy, hold back or damage packets that enter them. Queues,
  // delays and blocked pairs stay.
  void set_calm();

  // Puts a packet into the network. The network takes over the caller's hold on the payload. The
  // receiver must not be the sender.
  void send(Instant now, const Packet& packet);

  // Sends one packet to several receivers. Links that their ways share carry it only once. Where
  // their ways part, the network makes copies, which are packets of their own. There must be at
  // least one receiver, and none may be the sender. `packet.to` and `packet.word` are ignored.
  void send_shared(Instant now, Packet packet, std::span<const std::uint32_t> receivers);

  // Returns the bytes in the link's queue, including the packet on the line; 0 for unlimited links.
  // Endpoints wait while their uplink is full, as a socket would make them.
  std::uint64_t waiting_bytes(Instant now, LinkId link);

  // Handles an event of EventKind::network.
  void on_event(const Event& event);

  // Call it before every event of any kind. It fetches into the cache what the next events will
  // touch, which makes large networks faster.
  void look_ahead() const;

  const NetworkCounters& counters() const { return counters_; }
  const LinkCounters& link_counters(LinkId link) const;  // zeros for a link that no packet came to
  std::uint64_t under_way(Traffic traffic) const {
    return under_way_[static_cast<std::size_t>(traffic)];
  }

  // Hash over every step of every packet.
  const TraceHash& trace() const { return trace_; }

 private:
  struct alignas(64) Link {
    LinkLine line;
    LinkId id;
    bool scheduled = false;     // an event for the first of `packets` is pending
    PacketStore::List packets;  // in flight on it; only of a link that keeps the order
    alignas(64) LinkCounters counters;
  };

  // Zeroed memory for which the system provides pages only when they are written. A mesh of
  // thousands of ranks has far more links than packets ever use.
  struct Free {
    void operator()(std::uint32_t* memory) const { std::free(memory); }
  };
  using LazyTable = std::unique_ptr<std::uint32_t[], Free>;

  // `now`: a receiver may be called at once. `later`: a receiver is called only from a later event.
  enum class Deliver : bool { later, now };

  Network(const Topology& topology, std::uint64_t seed, EventQueue& queue,
          std::size_t payload_bytes_max, LazyTable numbers);

  std::uint32_t link_number(LinkId link);
  std::uint32_t make_link(LinkId link);

  void forward(Instant now, std::uint32_t place, Deliver deliver);
  void forward_unblocked(Instant now, std::uint32_t place,
                         std::span<const std::uint32_t> receivers);
  void part_ways(Instant now, std::uint32_t place, Deliver deliver);
  std::uint32_t branch(Instant now, const Packet& packet);
  void lose_each(Instant now, PacketStep step, LinkId link, std::uint32_t place);
  void give_receivers(Packet& packet, std::span<const std::uint32_t> receivers);
  void drop_receivers(Packet& packet);
  bool passes_at_once(const Link& link, const Packet& packet, Deliver deliver) const;
  void file(std::uint32_t number, std::uint32_t place, std::int64_t arrival_ns);
  void copy(Instant now, std::uint32_t number, std::uint32_t place, std::int64_t arrival_ns);
  void count(Link& link, const LinkLine::Passage& passage, const Packet& packet);
  void arrive_all(Instant now, std::uint32_t number);
  static void prefetch(const Link& link);
  static std::uint32_t place_of(const Link& link, const Event& event);
  const Link* link_after(const Packet& packet) const;
  void expect(const Packet& packet) const;
  void arrive(Link& link, std::uint32_t place);
  void deliver(Instant now, std::uint32_t place);
  void lose(Instant now, PacketStep step, LinkId link, std::uint32_t place);
  ByteSpan received(const Packet& packet);
  void tell(Instant now, PacketStep step, LinkId link, const Packet& packet, ByteSpan payload);

  const Topology* topology_;
  std::uint64_t seed_;
  EventQueue* queue_;
  std::array<PacketReceiver*, kTrafficKinds> receivers_{};
  PacketObserver* observer_ = nullptr;
  PayloadPool payloads_;
  PacketStore packets_;
  // receivers of shared packets, by Packet::word
  std::vector<std::vector<std::uint32_t>> receivers_of_;
  std::vector<std::uint32_t> free_receivers_;
  BlockedPairs blocked_;
  NarrowPairs narrow_;
  bool calm_ = false;
  LazyTable numbers_;  // by LinkId: 1 + index into links_, or 0 before its first packet
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<LinkTables>> tables_;  // by index of properties
  std::vector<std::unique_ptr<LossModel>> fates_;    // by number of the fate
  // A damaged copy of the payload that is being delivered.
  std::vector<std::byte> corrupted_;
  NetworkCounters counters_;
  std::array<std::uint64_t, kTrafficKinds> under_way_{};
  TraceHash trace_;
};

}  // namespace leeway::sim
