#include "transport/sealed/sealed_transport.h"

#include <algorithm>

#include "base/random_bits.h"
#include "transport/slice_cursor.h"
#include "transport/train_limits.h"

namespace leeway::transport {
namespace {

// Returns the limits for the core. They are smaller than the inner transport's, because sealing
// makes datagrams and trains longer. `intact` spares the core the checksums of bytes that the seal
// authenticates.
TransportLimits sealed_limits(TransportLimits limits) {
  limits.datagram_bytes_max -= seal::kOverheadBytes;
  limits.train_datagrams_max = std::min(limits.train_datagrams_max, kTrainDatagramsMax);
  limits.train_bytes_max = std::min(limits.train_bytes_max, kTrainBytesMax) -
                           limits.train_datagrams_max * seal::kOverheadBytes;
  limits.multicast = false;
  limits.intact = true;
  return limits;
}

// Returns the length of a train after each datagram is sealed for the receiver and again for the
// relay.
std::size_t relayed_bytes(const Train& train) {
  return seal::Associations::sealed_bytes(train) + datagrams_of(train) * seal::kRelayOverheadBytes;
}

}  // namespace

SealedTransport::SealedTransport(std::unique_ptr<DatagramTransport> inner, ClockFunction clock,
                                 const seal::Rotation& rotation, std::uint8_t lane)
    : inner_(std::move(inner)),
      where_(dynamic_cast<Whereabouts*>(inner_.get())),
      clock_(std::move(clock)),
      name_(inner_->name()),
      limits_(sealed_limits(inner_->limits())),
      seals_(lane, rotation),
      roaming_(random_bits()),
      trains_(kSlots),
      ready_(kSlots) {
  if (where_ != nullptr) where_->show_strangers();
}

void SealedTransport::meet(Rank slot, const seal::PairKeys& keys, const seal::CipherMaker& maker,
                           std::uint64_t name, const keys::Key& meeting) {
  const Instant now = clock_();
  const bool is_new = !seals_.knows(slot);
  seals_.meet(now, slot, keys, maker, meeting);
  if (where_ == nullptr || !is_new) return;
  const NetworkAddress address = where_->address_of(slot);
  roaming_.meet(now, slot, {&address, 1}, name);
  forwarding_.meet(slot, name);
  moves_.reserve(std::size_t{2} * (slot + 1));
}

std::size_t SealedTransport::send(std::span<const Train> trains) {
  flush();
  if (released_ == sealed_) first_ = sealed_;  // next is slot 0, likely in the cache
  const Instant now = clock_();
  std::size_t count = 0;
  for (; count < trains.size(); ++count) {
    const Train& train = trains[count];
    const Rank relay = relay_of(train.to);
    if (sealed_ - released_ + slots_of(train, relay) > kSlots) break;
    if (!seals_.knows(train.to)) {
      ++to_strangers_;
    } else if (relay != kNoRank) {
      prepare_relayed(now, train, relay);
    } else {
      prepare(now, train);
    }
  }
  flush();
  return count;
}

// Returns 2 if sealing for a relay makes the train too long, so that it leaves as two, else 1.
std::size_t SealedTransport::slots_of(const Train& train, Rank relay) {
  return relay != kNoRank && relayed_bytes(train) > kTrainBytesMax ? 2 : 1;
}

// Returns memory for sealing the next train.
MutableByteSpan SealedTransport::room_for(std::size_t bytes) {
  SealedTrain& out = trains_[slot_of(sealed_)];
  if (out.memory.size() < bytes) {
    // The memory grows only once for each slot, because it then has kTrainBytesMax, and no train is
    // longer
    if (!out.memory.empty()) inner_->forget_memory(out.memory);
    out.memory.resize(std::max(bytes, kTrainBytesMax));
    (void)inner_->register_memory(out.memory);  // if refused, it copies
  }
  out.slice = {out.memory.data(), bytes};
  return std::span(out.memory).first(bytes);
}

// Queues the bytes in room_for()'s memory as the next train.
void SealedTransport::commit(Rank to, std::size_t segment_bytes) {
  const std::size_t slot = slot_of(sealed_++);
  const Slice& slice = trains_[slot].slice;
  ready_[slot] = {to, segment_bytes, slice.bytes, {&slice, 1}};
}

std::array<std::byte, seal::kRelayHeadBytes> SealedTransport::onward_head(Rank to) const {
  std::array<std::byte, seal::kRelayHeadBytes> head;
  seal::encode_relay_head({seal::RelayHead::Kind::onward, Ecn::none, forwarding_.name_of(to)},
                          head);
  return head;
}

void SealedTransport::prepare(Instant now, const Train& train) {
  seals_.seal(now, train, room_for(seal::Associations::sealed_bytes(train)));
  if (where_ != nullptr) roaming_.on_sent(now, train.to);
  commit(train.to, train.segment_bytes + seal::kOverheadBytes);
}

// Prepares a relayed train: each datagram is sealed for its receiver, and the result again for the
// relay.
void SealedTransport::prepare_relayed(Instant now, const Train& train, Rank relay) {
  inner_bytes_.resize(std::max(inner_bytes_.size(), seal::Associations::sealed_bytes(train)));
  const std::size_t inner_bytes = seals_.seal(now, train, inner_bytes_);
  roaming_.on_sent(now, train.to);
  roaming_.on_sent(now, relay);
  const std::size_t segment_bytes = train.segment_bytes + seal::kOverheadBytes;
  const std::size_t trains = slots_of(train, relay);
  const std::size_t most = (datagrams_of(train) + trains - 1) / trains * segment_bytes;
  for (std::size_t begin = 0; begin < inner_bytes; begin += most) {
    prepare_onward(train.to, relay,
                   ByteSpan(inner_bytes_).subspan(begin, std::min(most, inner_bytes - begin)),
                   segment_bytes);
  }
}

void SealedTransport::prepare_onward(Rank to, Rank relay, ByteSpan sealed,
                                     std::size_t segment_bytes) {
  const auto head = onward_head(to);
  const std::size_t count = datagrams_of(sealed.size(), segment_bytes);
  shares_.on_sent(relay, count);
  const MutableByteSpan out = room_for(sealed.size() + count * seal::kRelayOverheadBytes);
  std::size_t used = 0;
  for (std::size_t at = 0; at < sealed.size(); at += segment_bytes) {
    const std::array<Slice, 2> pieces = {
        Slice{head.data(), head.size()},
        Slice{sealed.data() + at, std::min(segment_bytes, sealed.size() - at)}};
    used += seals_.seal_path_message(relay, pieces, out.subspan(used));
  }
  commit(relay, segment_bytes + seal::kRelayOverheadBytes);
}

// Prepares messages about keys, as far as there is room. A message to a peer takes the same way as
// trains to it: straight, or through a relay.
void SealedTransport::prepare_messages(Instant now) {
  while (seals_.has_messages()) {
    if (sealed_ - released_ == kSlots) flush();
    if (sealed_ - released_ == kSlots) return;
    const auto message = seals_.poll_message();
    if (!message) return;
    const ByteSpan datagram = message->datagram;
    if (where_ != nullptr) roaming_.on_sent(now, message->slot);
    if (const Rank relay = relay_of(message->slot); relay != kNoRank) {
      roaming_.on_sent(now, relay);
      prepare_onward(message->slot, relay, datagram, datagram.size());
      continue;
    }
    std::copy(datagram.begin(), datagram.end(), room_for(datagram.size()).begin());
    commit(message->slot, datagram.size());
  }
}

// Sends the prepared trains. Their slots are a ring, and one inner send() takes neighbouring slots.
// So trains that lie at the end and at the front of the ring need two calls.
void SealedTransport::flush() {
  while (taken_ < sealed_) {
    const std::size_t first = slot_of(taken_);
    const std::size_t count = std::min<std::size_t>(sealed_ - taken_, kSlots - first);
    const std::size_t taken = inner_->send(std::span(ready_).subspan(first, count));
    taken_ += taken;
    if (taken < count) break;
  }
  released_ = taken_ - inner_->borrowed();
}

std::size_t SealedTransport::receive(std::span<Received> out) {
  if (taken_ < sealed_) flush();
  const std::size_t count = inner_->receive(out);
  const Instant now = clock_();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Received datagram = out[i];
    if (where_ != nullptr) {
      if (open_from_anywhere(now, datagram)) out[kept++] = datagram;
      continue;
    }
    datagram.bytes = seals_.open(now, datagram.from, datagram.bytes);
    if (!datagram.bytes.empty()) out[kept++] = datagram;
  }
  serve(now);
  return kept;
}

// Opens a datagram whose sender may have a new address. Returns true if it is for the core.
bool SealedTransport::open_from_anywhere(Instant now, Received& datagram) {
  const seal::Associations::Opened opened =
      seals_.open_from_anywhere(now, datagram.from, datagram.bytes);
  if (opened.from == kNoRank) {
    from_strangers_ += datagram.from == kNoRank;
    return false;
  }
  if (opened.from == datagram.from && !opened.path_message) [[likely]] {
    roaming_.on_heard(now, opened.from);
    datagram.bytes = opened.bytes;
    return true;
  }
  const NetworkAddress source = where_->source_of(datagram);
  roaming_.on_opened(now, opened.from, source, datagram.bytes.size(), opened.newest);
  if (!opened.path_message) {
    datagram = {opened.from, opened.bytes, datagram.ecn};
    return true;
  }
  if (const auto head = seal::decode_relay_head(opened.bytes))
    return open_relayed(now, datagram, *head, opened);
  if (const auto message = seal::decode_path_message(opened.bytes)) {
    roaming_.on_message(now, opened.from, source, *message);
  } else if (const auto share = seal::decode_share_message(opened.bytes)) {
    shares_.on_message(opened.from, *share);
  }
  return false;
}

// Handles a datagram that came in a relay's envelope: this process must forward it, or a relay has
// forwarded it to this process. Returns true if it is for the core.
bool SealedTransport::open_relayed(Instant now, Received& datagram, const seal::RelayHead& head,
                                   const seal::Associations::Opened& outer) {
  if (head.kind == seal::RelayHead::Kind::onward) {
    const auto to = forwarding_.forward(now, outer.from, head, datagram.ecn, roaming_, outer.bytes);
    send_share(now, outer.from);
    if (!to) return false;
    forwarding_bytes_.resize(
        std::max(forwarding_bytes_.size(), outer.bytes.size() + seal::kOverheadBytes));
    const std::size_t used = seals_.seal_path_message(*to, outer.bytes, forwarding_bytes_);
    roaming_.on_sent(now, *to);
    (void)where_->send_to(roaming_.address_of(*to), ByteSpan(forwarding_bytes_).first(used));
    return false;
  }
  const seal::Associations::Opened opened = forwarding_.open(now, head, seals_, outer.bytes);
  if (opened.from == kNoRank) return false;
  if (opened.path_message) {
    if (const auto message = seal::decode_path_message(opened.bytes))
      roaming_.on_relayed_message(now, opened.from, outer.from, *message);
    return false;
  }
  // A congestion mark (ECN) counts, whether it was set before the relay or behind it
  const bool marked = head.ecn == Ecn::ce || datagram.ecn == Ecn::ce;
  datagram = {opened.from, opened.bytes, marked ? Ecn::ce : datagram.ecn};
  return true;
}

// Sends the peer the rate at which this process forwards for it, if share_for() returns one.
// share_for() does so only after some of the peer's datagrams were refused.
void SealedTransport::send_share(Instant now, Rank to) {
  const auto share = forwarding_.share_for(now, to);
  if (!share) return;
  std::array<std::byte, seal::kShareMessageBytes> message;
  std::array<std::byte, message.size() + seal::kOverheadBytes> sealed;
  seal::encode_share_message(*share, message);
  const std::size_t used = seals_.seal_path_message(to, ByteSpan(message), sealed);
  roaming_.on_sent(now, to);
  (void)where_->send_to(roaming_.address_of(to), ByteSpan(sealed).first(used));
}

void SealedTransport::send_path_message(const seal::Roaming::Outgoing& outgoing) {
  std::array<std::byte, seal::kPathMessageBytesMax> message;
  std::array<std::byte, seal::kPathMessageBytesMax + seal::kOverheadBytes> sealed;
  std::array<std::byte, sealed.size() + seal::kRelayOverheadBytes> relayed;
  const std::size_t bytes = seal::encode_path_message(outgoing.message, message);
  std::size_t used =
      seals_.seal_path_message(outgoing.slot, ByteSpan(message).first(bytes), sealed);
  if (outgoing.via == kNoRank) {
    // If the system does not take the message, it is lost.
    (void)where_->send_to(outgoing.to, ByteSpan(sealed).first(used));
    return;
  }
  const auto head = onward_head(outgoing.slot);
  const std::array<Slice, 2> pieces = {Slice{head.data(), head.size()}, Slice{sealed.data(), used}};
  shares_.on_sent(outgoing.via, 1);
  used = seals_.seal_path_message(outgoing.via, pieces, relayed);
  (void)where_->send_to(roaming_.address_of(outgoing.via), ByteSpan(relayed).first(used));
}

void SealedTransport::serve(Instant now) {
  seals_.on_wake(now);
  prepare_messages(now);
  if (taken_ < sealed_) flush();
  if (where_ == nullptr) return;
  roaming_.on_wake(now);
  while (const auto outgoing = roaming_.poll()) send_path_message(*outgoing);
  while (const auto move = roaming_.poll_move()) {
    if (move->via != kNoRank || where_->move(move->slot, move->to)) moves_.push_back(*move);
  }
}

std::optional<seal::Roaming::Move> SealedTransport::poll_move() {
  if (moves_.empty()) return std::nullopt;
  const seal::Roaming::Move move = moves_.back();
  moves_.pop_back();
  return move;
}

void SealedTransport::wait(Duration timeout) {
  const Instant now = clock_();
  serve(now);
  const Instant wake = std::min(seals_.next_wake(), roaming_.next_wake());
  timeout = std::min<Duration>(timeout, std::max<Duration>(wake - now, {}));
  inner_->wait(timeout);
  if (taken_ < sealed_) flush();
}

TransportCounters SealedTransport::counters() const {
  TransportCounters counters = inner_->counters();
  counters.send_errors += to_strangers_;
  counters.from_strangers += from_strangers_;
  return counters;
}

std::vector<std::pair<std::string, std::uint64_t>> SealedTransport::named_seal_counters() const {
  const seal::Counters& counted = seals_.counters();
  std::vector<std::pair<std::string, std::uint64_t>> rows = {
      {"sealed", counted.sealed}, {"opened", counted.opened}, {"key_phases", counted.phases}};
  for (int i = 1; i < seal::kRefusals; ++i)
    rows.emplace_back(std::string("refused_") + seal::kRefusalNames[i], counted.refused[i]);
  const seal::Roaming::Counters& roaming = roaming_.counters();
  rows.emplace_back("path_challenges", roaming.challenges);
  rows.emplace_back("path_moves", roaming.moves);
  rows.emplace_back("path_returns", roaming.returns);
  rows.emplace_back("path_trials_refused", roaming.refused);
  rows.emplace_back("keep_alives", roaming.keep_alives);
  rows.emplace_back("whereabouts_told", roaming.told);
  rows.emplace_back("paths_lost", roaming.silent);
  rows.emplace_back("relays_found", roaming.relays);
  const seal::Forwarding::Counters& forwarded = forwarding_.counters();
  rows.emplace_back("forwarded", forwarded.datagrams);
  rows.emplace_back("forwarded_bytes", forwarded.bytes);
  rows.emplace_back("forwarding_refused_share", forwarded.refused_share);
  rows.emplace_back("forwarding_refused_target", forwarded.refused_target);
  rows.emplace_back("refused_by_relays", shares_.refused());
  rows.emplace_back("relay_words_refused", shares_.words_refused());
  return rows;
}

}  // namespace leeway::transport
