// The way of a datagram from the network to the core, and the calls that tell observers of it.
#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "impairment/fault_plan.h"
#include "wire/packet.h"

namespace leeway::sim {
namespace {

// An injected reordering delays a datagram by this time for each later datagram that is to overtake
// it. The library's transport holds a datagram back for up to 8 later ones, at most a millisecond.
constexpr Duration kOvertakenBy = std::chrono::microseconds(125);

void flip_bit(MutableByteSpan bytes, std::uint64_t bit) {
  const std::uint64_t at = bit % (bytes.size() * 8);
  bytes[at / 8] ^= static_cast<std::byte>(1u << at % 8);
}

std::uint32_t length_of(const Packet& packet) {
  // A trimmed packet has no payload.
  return packet.payload == kNoPayload ? 0 : packet.bytes - kHeaderBytes;
}

Ecn ecn_of(const Packet& packet) {
  if (!packet.ecn_capable) return Ecn::none;
  return packet.marked ? Ecn::ce : Ecn::ect0;
}

}  // namespace

void CoreEndpoints::on_packet(Instant now, const Packet& packet, ByteSpan payload) {
  const bool has_lanes = processes_.size() > ranks();  // `word` is then the lane
  const std::uint32_t to =
      has_lanes ? packet.to + static_cast<std::uint32_t>(packet.word) * ranks() : packet.to;
  const Process& process = processes_[to];
  if (process.dead) return;
  Datagram datagram{packet.from, payload, length_of(packet),
                    packet.corrupt ? kNoPayload : packet.payload, ecn_of(packet)};
  if (process.seals != nullptr && !unseal(now, to, packet.word, datagram)) return;
  if (process.faults) {
    pass_faults(now, to, datagram);
  } else {
    hand_in(now, to, datagram);
  }
}

// Opens a sealed datagram. As in the library (transport/sealed), this comes before injected faults.
bool CoreEndpoints::unseal(Instant now, std::uint32_t process, std::uint64_t word,
                           Datagram& datagram) {
  Process& here = processes_[process];
  const NetworkAddress source = Addresses::source_of(word);
  const auto from = static_cast<Rank>(datagram.from);
  if (!addresses_->admits(now, process, source, Addresses::target_of(word))) {
    for (const Communicator& any : communicators_) tell_loss(process, datagram.from, any.epoch);
    return false;
  }
  unsealed_.assign(datagram.bytes.begin(), datagram.bytes.end());
  const Rank hint = here.roaming->address_of(from) == source ? from : kNoRank;
  const seal::Associations::Opened opened = here.seals->open_from_anywhere(now, hint, unsealed_);
  if (opened.from == kNoRank) return false;
  here.roaming->on_opened(now, opened.from, source, datagram.length, opened.newest);
  if (opened.path_message && opened.bytes.empty()) {  // about keys
    addresses_->on_received(process, source, datagram.length, false);
    want_pump(now, process);
    return false;
  }
  if (opened.path_message) {
    if (const auto head = seal::decode_relay_head(opened.bytes)) {
      addresses_->on_received(process, source, datagram.length, false);
      return unseal_relayed(now, process, *head, opened, datagram);
    }
    if (const auto share = seal::decode_share_message(opened.bytes)) {
      addresses_->on_received(process, source, datagram.length, false);
      here.shares.on_message(opened.from, *share);
      want_pump(now, process);
      return false;
    }
    const auto message = seal::decode_path_message(opened.bytes);
    LEEWAY_ASSERT(message);  // the peer made this message
    addresses_->on_received(process, source, datagram.length,
                            message->kind == seal::PathMessage::Kind::answer);
    if (message->kind == seal::PathMessage::Kind::whereabouts)
      addresses_->on_told(process, message->seen);
    here.roaming->on_message(now, opened.from, source, *message);
    want_pump(now, process);
    return false;
  }
  addresses_->on_received(process, source, datagram.length, false);
  if (opened.from != hint) want_pump(now, process);
  datagram = {datagram.from, opened.bytes, opened.bytes.size(), kNoPayload, datagram.ecn};
  return true;
}

// Opens a datagram that came through a relay. If this process is the relay, forwards it instead.
// Returns true if the datagram is for this core.
bool CoreEndpoints::unseal_relayed(Instant now, std::uint32_t process, const seal::RelayHead& head,
                                   const seal::Associations::Opened& outer, Datagram& datagram) {
  Process& here = processes_[process];
  if (head.kind == seal::RelayHead::Kind::onward) {
    if (here.paused) return false;
    const auto to =
        here.forwarding.forward(now, outer.from, head, datagram.ecn, *here.roaming, outer.bytes);
    if (const auto share = here.forwarding.share_for(now, outer.from)) {
      std::array<std::byte, seal::kShareMessageBytes> message;
      seal::encode_share_message(*share, message);
      relayed_.resize(message.size() + seal::kOverheadBytes);
      (void)here.seals->seal_path_message(outer.from, ByteSpan(message), relayed_);
      here.onward.push_back({outer.from, network_.payloads().put(relayed_),
                             static_cast<std::uint32_t>(relayed_.size()), true});
      want_pump(now, process);
    }
    if (!to) return false;
    relayed_.resize(outer.bytes.size() + seal::kOverheadBytes);
    (void)here.seals->seal_path_message(*to, outer.bytes, relayed_);
    here.onward.push_back(
        {*to, network_.payloads().put(relayed_), static_cast<std::uint32_t>(relayed_.size())});
    want_pump(now, process);
    return false;
  }
  const seal::Associations::Opened opened =
      here.forwarding.open(now, head, *here.seals, outer.bytes);
  if (opened.from == kNoRank) return false;
  if (opened.path_message && opened.bytes.empty()) {
    want_pump(now, process);
    return false;
  }
  if (opened.path_message) {
    const auto message = seal::decode_path_message(opened.bytes);
    LEEWAY_ASSERT(message);  // the peer made this message
    if (message->kind == seal::PathMessage::Kind::whereabouts)
      addresses_->on_told(process, message->seen);
    here.roaming->on_relayed_message(now, opened.from, outer.from, *message);
    want_pump(now, process);
    return false;
  }
  const Ecn ecn = head.ecn == Ecn::ce ? Ecn::ce : datagram.ecn;
  datagram = {opened.from, opened.bytes, opened.bytes.size(), kNoPayload, ecn};
  return true;
}

// Fetches into the cache what the packet's arrival will need. Called only in networks of hundreds
// of links.
void CoreEndpoints::expect(const Packet& packet) const {
  network_.payloads().prefetch(packet.payload);
  engine(packet.to).endpoint().expect(static_cast<Rank>(packet.from));
}

void CoreEndpoints::pass_faults(Instant now, std::uint32_t rank, Datagram datagram) {
  impairment::PacketAddress address;
  if (!impairment::read_address(datagram.bytes, rank_of(rank), address))
    return hand_in(now, rank, datagram);
  const impairment::Fate fate = processes_[rank].faults->fate(address);
  if (fate.lost) {
    ++injected_losses_;
    return;
  }
  if (fate.corrupt) {
    corrupted_.assign(datagram.bytes.begin(), datagram.bytes.end());
    // No checksum protects the payload of an opened datagram, so only its header is damaged, as in
    // the library's own fault injection.
    const MutableByteSpan all = corrupted_;
    flip_bit(address.payload_summed ? all : all.first(wire::kDataHeaderBytes), fate.corrupt_bit);
    datagram.bytes = corrupted_;
    datagram.payload = kNoPayload;
  }
  const Instant due = now + fate.delay + fate.reorder * kOvertakenBy;
  if (fate.duplicate) hold_back(due, rank, datagram);
  if (due > now) return hold_back(due, rank, datagram);
  hand_in(now, rank, datagram);
}

void CoreEndpoints::hold_back(Instant until, std::uint32_t rank, const Datagram& datagram) {
  if (free_held_.empty()) {
    free_held_.push_back(static_cast<std::uint32_t>(held_.size()));
    held_.emplace_back();
  }
  const std::uint32_t index = free_held_.back();
  free_held_.pop_back();
  held_[index] = keep(datagram);
  queue_.push(until, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::arrive) | std::uint64_t{index} << 8);
}

CoreEndpoints::Kept CoreEndpoints::keep(const Datagram& datagram) {
  const auto length = static_cast<std::uint32_t>(datagram.length);
  if (datagram.payload == kNoPayload)
    return {datagram.from, network_.payloads().put(datagram.bytes), length, datagram.ecn};
  network_.payloads().hold(datagram.payload);
  return {datagram.from, datagram.payload, length, datagram.ecn};
}

void CoreEndpoints::hand_in_kept(Instant now, std::uint32_t rank, const Kept& kept) {
  if (!processes_[rank].dead)
    hand_in(
        now, rank,
        {kept.from, network_.payloads().get(kept.payload), kept.length, kept.payload, kept.ecn});
  network_.payloads().release(kept.payload);
}

void CoreEndpoints::hand_in(Instant now, std::uint32_t rank, const Datagram& datagram) {
  Process& process = processes_[rank];
  if (process.paused) return keep_in_socket(process, datagram);
  if (process.node->wants_host_drops(now)) [[unlikely]]
    process.node->on_host_drops(now, process.socket_losses, socket_bytes_);
  const ByteSpan bytes = whole(datagram);
  if (communicators_[0].observer != nullptr) tell(now, rank, datagram, bytes);
  process.node->on_datagram(now, static_cast<Rank>(datagram.from), bytes, datagram.ecn);
  want_pump(now, rank);
}

ByteSpan CoreEndpoints::whole(const Datagram& datagram) {
  if (datagram.bytes.size() == datagram.length) return datagram.bytes;
  std::copy(datagram.bytes.begin(), datagram.bytes.end(), arrived_.begin());
  return ByteSpan(arrived_).first(datagram.length);
}

void CoreEndpoints::keep_in_socket(Process& process, const Datagram& datagram) {
  if (process.socket_bytes + datagram.length > socket_bytes_) {
    ++process.socket_losses;
    ++socket_losses_;
    return;
  }
  process.socket_bytes += datagram.length;
  process.socket.push_back(keep(datagram));
}

// Tells the observers of a datagram that arrived. Datagrams for the process instead of a member are
// skipped, except pieces: observers are told of the whole datagram with its last piece.
void CoreEndpoints::tell(Instant now, std::uint32_t process, const Datagram& datagram,
                         ByteSpan bytes) {
  if (!wire::is_for_process(bytes)) return tell_datagram(now, process, datagram.from, bytes);
  wire::Prefix prefix;
  wire::Piece piece;
  ByteSpan content;
  if (wire::decode_prefix(bytes, nullptr, prefix) != wire::Refusal::none)
    return tell_stray(now, process, datagram.from, wire::epoch_of(bytes).value_or(0), bytes);
  Process& reader = processes_[process];
  // A node ignores pieces from a process that it has given up.
  const bool joins = prefix.type == wire::PacketType::piece && !reader.arriving.empty() &&
                     !reader.node->path(static_cast<Rank>(datagram.from)).dead() &&
                     wire::decode_piece(bytes, piece, content) == wire::Refusal::none;
  if (!joins) return;
  const ByteSpan whole = reader.arriving[datagram.from].add(prefix.sequence, piece, content);
  if (!whole.empty()) tell_datagram(now, process, datagram.from, whole);
}

// Tells observers that a datagram may be lost, whenever a piece of one (WIRE 10.6) or a size
// message (WIRE 10.2) leaves. A lost piece does not show to which datagram it belonged.
void CoreEndpoints::tell_cut(const Train& train, std::uint32_t from, ByteSpan datagram) {
  if (wire::is_for_process(datagram) && communicators_[0].observer != nullptr)
    tell_loss(train.to, from, wire::epoch_of(datagram).value_or(0));
}

// Tells the observer of the communicator whose epoch the datagram names.
void CoreEndpoints::tell_datagram(Instant now, std::uint32_t process, std::uint32_t sender,
                                  ByteSpan bytes) {
  const std::uint32_t epoch = wire::epoch_of(bytes).value_or(0);
  for (const Seat* seat : processes_[process].seats) {
    if (communicators_[seat->communicator].epoch != epoch) continue;
    const Rank from = seat->member->rank_in(static_cast<Rank>(sender));
    if (from == kNoRank) break;
    return communicators_[seat->communicator].observer->on_datagram(now, seat->rank, from, bytes);
  }
  tell_stray(now, process, sender, epoch, bytes);
}

// Tells observers of a datagram that reaches no member. The node keeps the datagram for a member
// that joins later. If an older datagram has to make room for it, the older one is lost.
void CoreEndpoints::tell_stray(Instant now, std::uint32_t process, std::uint32_t from,
                               std::uint32_t epoch, ByteSpan bytes) {
  if (lane_of(process) == 0) communicators_[0].observer->on_stray(now, process);
  wire::Prefix prefix;
  if (wire::decode_prefix(bytes, nullptr, prefix) != wire::Refusal::none) {
    for (const Communicator& any : communicators_) tell_loss(process, from, any.epoch);
    return;
  }
  if (prefix.type == wire::PacketType::alive) return;  // the node keeps no such datagrams
  for (const Communicator& any : communicators_) {
    const auto seat = std::find_if(any.seats.begin(), any.seats.end(),
                                   [&](const Seat& one) { return one.process == process; });
    if (any.epoch == epoch && seat != any.seats.end() && seat->member != nullptr) return;  // closed
  }
  const auto dropped = processes_[process].lobby.put(prefix, static_cast<Rank>(from), bytes);
  if (dropped) tell_loss(process, dropped->slot, dropped->epoch);
}

void CoreEndpoints::tell_loss(std::uint32_t process, std::uint32_t from, std::uint32_t epoch) {
  for (const Communicator& any : communicators_) {
    if (any.epoch != epoch || any.lane != lane_of(process)) continue;
    const auto rank_in = [&](std::uint32_t of) {
      return static_cast<Rank>(std::find(any.processes.begin(), any.processes.end(), of) -
                               any.processes.begin());
    };
    const Rank to = rank_in(rank_of(process));
    const Rank sender = rank_in(from);
    if (to < any.seats.size() && sender < any.seats.size()) any.observer->on_lost(to, sender);
  }
}

}  // namespace leeway::sim
