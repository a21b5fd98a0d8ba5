#include "network/network.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::sim {
namespace {

// An event's argument is the place of the packet that arrives. This value stands for the first
// packet in the link's list.
constexpr std::uint64_t kFirstOfList = UINT64_MAX;

// With at most this many links everything is in the cache, so looking ahead costs more than it
// gains.
constexpr std::size_t kLinksInCache = 256;

std::size_t index_of(Traffic traffic) {
  return static_cast<std::size_t>(traffic);
}

// Packs what decides a packet's fate into one word for the trace hash.
std::uint64_t trace_word(const Packet& packet) {
  const std::uint64_t flags =
      std::uint64_t{packet.ecn_capable} | std::uint64_t{packet.marked} << 1 |
      std::uint64_t{packet.trimmed} << 2 | std::uint64_t{packet.corrupt} << 3 |
      std::uint64_t{packet.duplicate} << 4;
  return std::uint64_t{packet.bytes} << 16 | flags << 8 | index_of(packet.traffic);
}

}  // namespace

Result<std::unique_ptr<Network>> Network::make(const Topology& topology, std::uint64_t seed,
                                               EventQueue& queue, std::size_t payload_bytes_max) {
  const std::size_t links = std::max<std::size_t>(1, topology.links());
  LazyTable numbers(static_cast<std::uint32_t*>(std::calloc(links, sizeof(std::uint32_t))));
  if (numbers == nullptr) {
    return Status::error(StatusCode::kResourceExhausted, "no memory for a table of %zu links",
                         links);
  }
  return std::unique_ptr<Network>(
      new Network(topology, seed, queue, payload_bytes_max, std::move(numbers)));
}

Network::Network(const Topology& topology, std::uint64_t seed, EventQueue& queue,
                 std::size_t payload_bytes_max, LazyTable numbers)
    : topology_(&topology),
      seed_(seed),
      queue_(&queue),
      payloads_(payload_bytes_max),
      blocked_(topology.ranks()),
      narrow_(topology.ranks()),
      numbers_(std::move(numbers)),
      tables_(topology.properties_count()),
      corrupted_(payload_bytes_max) {}

std::uint32_t Network::link_number(LinkId link) {
  const std::uint32_t number = numbers_[link];
  if (number == 0) [[unlikely]]
    return make_link(link);
  return number - 1;
}

std::uint32_t Network::make_link(LinkId link) {
  const LinkProperties& properties = topology_->properties(link);
  std::unique_ptr<LinkTables>& tables = tables_[topology_->properties_index(link)];
  if (tables == nullptr) tables = std::make_unique<LinkTables>(properties);
  LossModel* fate = nullptr;
  if (properties.fate != LinkProperties::kOwnFate) {
    if (fates_.size() <= properties.fate) fates_.resize(properties.fate + 1);
    std::unique_ptr<LossModel>& shared = fates_[properties.fate];
    if (shared == nullptr) {
      shared = std::make_unique<LossModel>(make_shared_fate(*tables, properties.fate, seed_));
    }
    fate = shared.get();
  }
  links_.push_back(std::make_unique<Link>(
      Link{LinkLine(properties, *tables, fate, {seed_, link}), link, false, {}, {}}));
  if (calm_) links_.back()->line.set_calm();
  numbers_[link] = static_cast<std::uint32_t>(links_.size());
  return numbers_[link] - 1;
}

void Network::set_calm() {
  calm_ = true;
  for (const std::unique_ptr<Link>& link : links_) link->line.set_calm();
}

void Network::send(Instant now, const Packet& packet) {
  LEEWAY_ASSERT(packet.from != packet.to && packet.bytes > 0);
  LEEWAY_ASSERT(packet.from < topology_->ranks() && packet.to < topology_->ranks());
  ++counters_.sent[index_of(packet.traffic)];
  ++under_way_[index_of(packet.traffic)];
  const std::uint32_t place = packets_.put(packet);
  tell(now, PacketStep::sent, kArrived, packet, payloads_.get(packet.payload));
  const bool passes = narrow_.passes(packet.from, packet.to, packet.bytes);
  if (!passes || blocked_.contains(packet.from, packet.to)) [[unlikely]] {
    return lose(now, PacketStep::blocked, kArrived, place);
  }
  forward(now, place, Deliver::later);
}

// ---- packets for several receivers --------------------------------------------------------------

void Network::give_receivers(Packet& packet, std::span<const std::uint32_t> receivers) {
  packet.to = receivers[0];
  packet.shared = receivers.size() > 1;
  if (!packet.shared) return;
  if (free_receivers_.empty()) {
    free_receivers_.push_back(static_cast<std::uint32_t>(receivers_of_.size()));
    receivers_of_.emplace_back();
  }
  packet.word = free_receivers_.back();
  free_receivers_.pop_back();
  receivers_of_[packet.word].assign(receivers.begin(), receivers.end());
}

void Network::drop_receivers(Packet& packet) {
  if (!packet.shared) return;
  packet.shared = false;
  free_receivers_.push_back(static_cast<std::uint32_t>(packet.word));
  packet.word = 0;
}

void Network::send_shared(Instant now, Packet packet, std::span<const std::uint32_t> receivers) {
  LEEWAY_ASSERT(packet.bytes > 0 && !receivers.empty());
  ++counters_.sent[index_of(packet.traffic)];
  ++under_way_[index_of(packet.traffic)];
  give_receivers(packet, receivers);
  const std::uint32_t place = packets_.put(packet);
  tell(now, PacketStep::sent, kArrived, packet, payloads_.get(packet.payload));
  if (blocked_.any()) [[unlikely]]
    return forward_unblocked(now, place, receivers);
  forward(now, place, Deliver::later);
}

// Forwards a shared packet (one with several receivers) to the receivers that no partition cuts
// off.
void Network::forward_unblocked(Instant now, std::uint32_t place,
                                std::span<const std::uint32_t> receivers) {
  Packet packet = packets_[place].packet;
  drop_receivers(packet);
  std::vector<std::uint32_t> open;
  std::vector<std::uint32_t> cut_off;
  for (const std::uint32_t to : receivers)
    (blocked_.contains(packet.from, to) ? cut_off : open).push_back(to);
  if (!open.empty()) {
    give_receivers(packet, open);
    packets_[place].packet = packet;
    if (!cut_off.empty()) {
      give_receivers(packet, cut_off);
      lose(now, PacketStep::blocked, kArrived, branch(now, packet));
    }
    return forward(now, place, Deliver::later);
  }
  give_receivers(packet, cut_off);
  packets_[place].packet = packet;
  lose(now, PacketStep::blocked, kArrived, place);
}

// Makes a copy of a shared packet (one with several receivers) for some of them. Returns the copy's
// place.
std::uint32_t Network::branch(Instant now, const Packet& packet) {
  payloads_.hold(packet.payload);
  ++counters_.copied[index_of(packet.traffic)];
  ++under_way_[index_of(packet.traffic)];
  tell(now, PacketStep::duplicated, kArrived, packet, payloads_.get(packet.payload));
  return packets_.put(packet);
}

// Splits a shared packet (one with several receivers) where its receivers' ways part. The packet
// stays with the first receiver and those that share the first one's next link. Copies go to the
// other receivers.
void Network::part_ways(Instant now, std::uint32_t place, Deliver deliver_when) {
  Packet packet = packets_[place].packet;
  std::vector<std::uint32_t> left = receivers_of_[packet.word];
  drop_receivers(packet);
  for (bool first = true; !left.empty(); first = false) {
    const LinkId link = topology_->next_link(packet.from, left[0], packet.hop);
    std::vector<std::uint32_t> together;
    std::vector<std::uint32_t> apart;
    for (const std::uint32_t to : left) {
      const bool same =
          to == left[0] ||
          (link != kArrived && topology_->next_link(packet.from, to, packet.hop) == link);
      (same ? together : apart).push_back(to);
    }
    give_receivers(packet, together);
    left = std::move(apart);
    if (first) {
      packets_[place].packet = packet;
    } else {
      forward(now, branch(now, packet), deliver_when);
    }
  }
}

// Loses a shared packet (one with several receivers): counts a loss for each receiver, so that an
// observer hears of every one.
void Network::lose_each(Instant now, PacketStep step, LinkId link, std::uint32_t place) {
  Packet packet = packets_[place].packet;
  const std::vector<std::uint32_t> receivers = receivers_of_[packet.word];
  drop_receivers(packet);
  for (std::size_t i = 1; i < receivers.size(); ++i) {
    packet.to = receivers[i];
    lose(now, step, link, branch(now, packet));
  }
  packet.to = receivers[0];
  packets_[place].packet = packet;
  lose(now, step, link, place);
}

// -------------------------------------------------------------------------------------------------

// Takes the packet over the next links while they do not delay it. Then it goes onto the next link
// or to its receiver.
void Network::forward(Instant now, std::uint32_t place, Deliver deliver_when) {
  while (true) {
    if (packets_[place].packet.shared) [[unlikely]]
      part_ways(now, place, deliver_when);
    Packet& packet = packets_[place].packet;
    const LinkId id = topology_->next_link(packet.from, packet.to, packet.hop);
    if (id == kArrived) return deliver(now, place);
    const std::uint32_t number = link_number(id);
    Link& link = *links_[number];
    const LinkLine::Passage passage = link.line.pass(now.ns, packet);
    count(link, passage, packet);
    if (is_loss(passage.step)) [[unlikely]]
      return lose(now, passage.step, id, place);
    if (packet.trimmed && packet.payload != kNoPayload) [[unlikely]] {
      payloads_.release(std::exchange(packet.payload, kNoPayload));
    }
    const bool at_once = passes_at_once(link, packet, deliver_when);
    if (!at_once) file(number, place, passage.arrival_ns);
    if (passage.copied) [[unlikely]]
      copy(now, number, place, passage.copy_arrival_ns);
    if (!at_once) return;
    arrive(link, place);
  }
}

// Returns true if the packet passes the link without an event, because the link delays nothing.
// Returns false if the packet would overtake packets that wait there, or reach its receiver within
// send().
bool Network::passes_at_once(const Link& link, const Packet& packet, Deliver deliver_when) const {
  if (!link.line.at_once() || link.scheduled) return false;
  if (packet.shared) return deliver_when == Deliver::now;
  return deliver_when == Deliver::now ||
         topology_->next_link(packet.from, packet.to, packet.hop + 1u) != kArrived;
}

void Network::count(Link& link, const LinkLine::Passage& passage, const Packet& packet) {
  LinkCounters& counters = link.counters;
  ++counters.offered[index_of(packet.traffic)];
  counters.queue_bytes_max = std::max(counters.queue_bytes_max, passage.waiting_bytes);
  if (passage.unharmed()) [[likely]]
    return;
  counters.lost[index_of(packet.traffic)] += is_loss(passage.step);
  counters.queue_full += passage.step == PacketStep::queue_full;
  counters.queue_early += passage.step == PacketStep::queue_early;
  counters.marked += passage.marked;
  counters.trimmed += passage.trimmed;
  counters.corrupted += passage.corrupted;
  counters.reordered += passage.held_back;
}

// Puts the packet in flight on the link until `arrival_ns`.
void Network::file(std::uint32_t number, std::uint32_t place, std::int64_t arrival_ns) {
  Link& link = *links_[number];
  if (!link.line.in_order()) {
    queue_->push({arrival_ns}, number, static_cast<std::uint32_t>(EventKind::network), place);
    return;
  }
  packets_[place].arrival_ns = arrival_ns;
  packets_.append(link.packets, place);
  if (std::exchange(link.scheduled, true)) return;
  queue_->push({arrival_ns}, number, static_cast<std::uint32_t>(EventKind::network), kFirstOfList);
}

void Network::copy(Instant now, std::uint32_t number, std::uint32_t place,
                   std::int64_t arrival_ns) {
  Packet packet = packets_[place].packet;
  packet.duplicate = true;
  payloads_.hold(packet.payload);
  if (packet.shared) [[unlikely]]
    give_receivers(packet, std::vector(receivers_of_[packet.word]));
  Link& link = *links_[number];
  ++link.counters.copied[index_of(packet.traffic)];
  ++counters_.copied[index_of(packet.traffic)];
  ++under_way_[index_of(packet.traffic)];
  tell(now, PacketStep::duplicated, link.id, packet, payloads_.get(packet.payload));
  file(number, packets_.put(packet), arrival_ns);
}

void Network::on_event(const Event& event) {
  const Instant now{event.time_ns};
  if (event.argument == kFirstOfList) return arrive_all(now, event.target);
  const auto place = static_cast<std::uint32_t>(event.argument);
  arrive(*links_[event.target], place);
  forward(now, place, Deliver::now);
}

// Prefetches for the next events, because millions of packets on thousands of links exceed a cache.
// Each event gets one step at a time: its link, its packet, the next link, the queue there. A step
// reads only what an earlier one fetched, so it does not wait (README.md: measured).
void Network::look_ahead() const {
  if (links_.size() <= kLinksInCache) return;
  constexpr int kLink = 7, kPacket = 5, kBeyond = 3, kQueue = 1, kWaiting = 0;
  queue_->look_ahead(kLink + 1, [this](int ahead, const Event& event) {
    if (event.kind != static_cast<std::uint32_t>(EventKind::network)) return;
    const Link& link = *links_[event.target];
    if (ahead == kLink) return prefetch(link);
    if (ahead == kPacket) return packets_.prefetch(place_of(link, event));
    if (ahead > kBeyond) return;
    const PacketStore::Place& place = packets_[place_of(link, event)];
    const Link* const next = link_after(place.packet);
    if (ahead == kBeyond) {
      if (place.next != PacketStore::kNone) packets_.prefetch(place.next);
      return next == nullptr ? expect(place.packet) : prefetch(*next);
    }
    if (next == nullptr) return;
    if (ahead == kQueue) next->line.prefetch_queue();
    if (ahead == kWaiting) next->line.prefetch_waiting();
  });
}

void Network::prefetch(const Link& link) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&link);
  const auto* const counters = reinterpret_cast<const std::byte*>(&link.counters);
  for (const std::byte* line = begin; line <= counters; line += 64) __builtin_prefetch(line, 1);
}

std::uint32_t Network::place_of(const Link& link, const Event& event) {
  return event.argument == kFirstOfList ? link.packets.first
                                        : static_cast<std::uint32_t>(event.argument);
}

// Returns the packet's next link, or null if the packet arrives or no packet has come to that link
// yet.
const Network::Link* Network::link_after(const Packet& packet) const {
  const LinkId id = topology_->next_link(packet.from, packet.to, packet.hop + 1u);
  return id == kArrived || numbers_[id] == 0 ? nullptr : links_[numbers_[id] - 1].get();
}

void Network::expect(const Packet& packet) const {
  const PacketReceiver* const receiver = receivers_[index_of(packet.traffic)];
  if (receiver != nullptr) receiver->expect(packet);
}

// Delivers the packets that arrive at this instant, without those that receivers put onto this link
// meanwhile.
void Network::arrive_all(Instant now, std::uint32_t number) {
  Link& link = *links_[number];
  const std::uint32_t last = link.packets.last;
  while (true) {
    const std::uint32_t place = packets_.pop_first(link.packets);
    arrive(link, place);
    forward(now, place, Deliver::now);
    if (place == last || packets_[link.packets.first].arrival_ns > now.ns) break;
  }
  link.scheduled = !link.packets.empty();
  if (!link.scheduled) return;
  queue_->push({packets_[link.packets.first].arrival_ns}, number,
               static_cast<std::uint32_t>(EventKind::network), kFirstOfList);
}

// Counts the packet at the link's far end.
void Network::arrive(Link& link, std::uint32_t place) {
  Packet& packet = packets_[place].packet;
  ++link.counters.passed[index_of(packet.traffic)];
  link.counters.bytes_passed += packet.bytes;
  ++packet.hop;
}

void Network::deliver(Instant now, std::uint32_t place) {
  if (blocked_.contains(packets_[place].packet.from, packets_[place].packet.to)) [[unlikely]] {
    return lose(now, PacketStep::blocked, kArrived, place);
  }
  const Packet packet = packets_.take(place);
  --under_way_[index_of(packet.traffic)];
  ++counters_.delivered[index_of(packet.traffic)];
  const ByteSpan payload = received(packet);
  tell(now, PacketStep::delivered, kArrived, packet, payload);
  PacketReceiver* const receiver = receivers_[index_of(packet.traffic)];
  LEEWAY_ASSERT(receiver != nullptr);
  receiver->on_packet(now, packet, payload);
  payloads_.release(packet.payload);
}

void Network::lose(Instant now, PacketStep step, LinkId link, std::uint32_t place) {
  if (packets_[place].packet.shared) [[unlikely]]
    return lose_each(now, step, link, place);
  const Packet packet = packets_.take(place);
  --under_way_[index_of(packet.traffic)];
  ++counters_.lost[index_of(packet.traffic)];
  tell(now, step, link, packet, payloads_.get(packet.payload));
  payloads_.release(packet.payload);
}

// Returns the payload as the receiver gets it, with a bit flipped if the packet is corrupt.
ByteSpan Network::received(const Packet& packet) {
  const ByteSpan sent = payloads_.get(packet.payload);
  if (!packet.corrupt || sent.empty()) [[likely]]
    return sent;
  std::copy(sent.begin(), sent.end(), corrupted_.begin());
  const std::size_t bit = packet.corrupt_bit % (sent.size() * 8);
  corrupted_[bit / 8] ^= std::byte{1} << bit % 8;
  return {corrupted_.data(), sent.size()};
}

void Network::tell(Instant now, PacketStep step, LinkId link, const Packet& packet,
                   ByteSpan payload) {
  trace_.add(now, static_cast<std::uint32_t>(step), link,
             std::uint64_t{packet.from} << 32 | packet.to, trace_word(packet));
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_packet(now, step, link, packet, payload);
}

const LinkCounters& Network::link_counters(LinkId link) const {
  static constexpr LinkCounters kNothing;
  LEEWAY_ASSERT(link < topology_->links());
  return numbers_[link] == 0 ? kNothing : links_[numbers_[link] - 1]->counters;
}

std::uint64_t Network::waiting_bytes(Instant now, LinkId link) {
  LEEWAY_ASSERT(link < topology_->links());
  return numbers_[link] == 0 ? 0 : links_[numbers_[link] - 1]->line.waiting_bytes(now.ns);
}

}  // namespace leeway::sim
