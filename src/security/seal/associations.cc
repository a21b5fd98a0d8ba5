#include "seal/associations.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "base/limits.h"

namespace leeway::seal {
namespace {

// Limit on the pieces of a datagram. A datagram has no more pieces than its batch has slices; a
// batch has at most two slices for each datagram (protocol/train_buffer.h).
constexpr std::size_t kPiecesMax = 256;

// Limit on key exchanges in one on_wake(). An exchange takes less than 100 us at either end, so
// on_wake() takes no longer than a few batches, however many peers there are.
constexpr int kExchangesPerWake = 4;

std::size_t datagrams_of(const Train& train) {
  return (train.total_bytes + train.segment_bytes - 1) / train.segment_bytes;
}

// Cuts the slices of a batch at the ends of its datagrams.
class Pieces {
 public:
  explicit Pieces(std::span<const Slice> slices) : next_(slices.data()) {}

  std::span<const Slice> take(std::size_t bytes) {
    std::size_t count = 0;
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, next_->bytes - offset_);
      if (part > 0) {
        LEEWAY_ASSERT(count < kPiecesMax);
        pieces_[count++] = {next_->data + offset_, part};
      }
      bytes -= part;
      offset_ += part;
      if (offset_ < next_->bytes) continue;
      ++next_;
      offset_ = 0;
    }
    return std::span(pieces_).first(count);
  }

 private:
  const Slice* next_;
  std::size_t offset_ = 0;
  std::array<Slice, kPiecesMax> pieces_;
};

}  // namespace

template <typename Visitor>
void Associations::for_each_with(std::uint32_t tag, const Visitor& visit) const {
  if (by_tag_.empty()) return;
  for (std::size_t at = tag % by_tag_.size(); by_tag_[at].slot != kNoRank;
       at = (at + 1) % by_tag_.size()) {
    if (by_tag_[at].tag == tag) visit(by_tag_[at]);
  }
}

bool Associations::needs_keys(Rank slot, const keys::Key& meeting) const {
  if (!knows(slot)) return true;
  const std::vector<Met>& met = by_slot_[slot].met;
  return std::none_of(met.begin(), met.end(),
                      [&](const Met& one) { return one.heard || one.meeting == meeting; });
}

void Associations::meet(Instant now, Rank slot, const PairKeys& keys, const CipherMaker& maker,
                        const keys::Key& meeting) {
  LEEWAY_ASSERT(needs_keys(slot, meeting) && keys.lane == lane_);
  if (slot >= by_slot_.size()) by_slot_.resize(slot + std::size_t{1});
  Peer& peer = by_slot_[slot];
  peer.sends_by = static_cast<std::uint32_t>(peer.met.size());
  auto association = std::make_unique<Association>(now, keys, maker, exchange_, rotation_);
  const std::uint32_t tag = association->inbound_tag();
  peer.met.push_back({meeting, std::move(association)});
  for_each_with(
      tag, [this](const Entry&) { copy_.reserve(limits::kDatagramBytesMax + kOverheadBytes); });
  if (by_tag_.size() < 2 * (entries_ + 1)) grow();
  insert({tag, slot, peer.sends_by});
  ++entries_;
}

void Associations::grow() {
  std::vector<Entry> entries(std::max<std::size_t>(16, 2 * by_tag_.size()));
  entries.swap(by_tag_);
  for (const Entry& entry : entries) {
    if (entry.slot != kNoRank) insert(entry);
  }
}

void Associations::insert(Entry entry) {
  std::size_t at = entry.tag % by_tag_.size();
  while (by_tag_[at].slot != kNoRank) at = (at + 1) % by_tag_.size();
  by_tag_[at] = entry;
}

Refusal Associations::open_by(Instant now, const Entry& entry, const Header& header,
                              MutableByteSpan datagram) {
  Peer& peer = by_slot_[entry.slot];
  Met& met = peer.met[entry.met];
  const Refusal refusal = met.association->open(now, header, datagram);
  if (met.association->is_settled() || refusal != Refusal::none) [[likely]]
    return refusal;
  met.association->settle(now);
  wake_by(met.association->next_wake());
  if (met.heard) {
    ++counters_.phases;
    return refusal;
  }
  const bool is_first =
      std::none_of(peer.met.begin(), peer.met.end(), [](const Met& one) { return one.heard; });
  met.heard = true;
  if (is_first || met.meeting < peer.met[peer.sends_by].meeting) peer.sends_by = entry.met;
  return refusal;
}

// Takes in a message about keys. Returns false if the bytes are none.
bool Associations::take_message(Instant now, const Entry& entry, ByteSpan bytes) {
  const auto message = decode_exchange_message(bytes);
  if (!message) return false;
  association_of(entry).on_message(now, *message);
  wake_by(association_of(entry).next_wake());
  return true;
}

void Associations::on_wake(Instant now) {
  if (now < wake_at_) [[likely]]
    return;
  wake_at_ = Instant::infinite_future();
  messages_.clear();
  int exchanges = kExchangesPerWake;
  for (Rank slot = 0; slot < by_slot_.size(); ++slot) {
    for (std::uint32_t met = 0; met < by_slot_[slot].met.size(); ++met) {
      Association& association = *by_slot_[slot].met[met].association;
      association.on_wake(now, exchanges);
      wake_by(association.next_wake());
      if (association.has_message()) messages_.push_back({association.inbound_tag(), slot, met});
    }
  }
}

std::optional<Associations::Outgoing> Associations::poll_message() {
  while (!messages_.empty()) {
    const Entry entry = messages_.back();
    messages_.pop_back();
    const std::size_t bytes = association_of(entry).seal_message(message_);
    if (bytes == 0) continue;  // the message's phase is over
    ++counters_.sealed;
    return Outgoing{entry.slot, ByteSpan(message_).first(bytes)};
  }
  return std::nullopt;
}

Refusal Associations::decode(ByteSpan datagram, Header& header) const {
  const Refusal refusal = decode_header(datagram, header);
  return refusal == Refusal::none && header.lane != lane_ ? Refusal::form : refusal;
}

std::size_t Associations::sealed_bytes(const Train& train) {
  return train.total_bytes + datagrams_of(train) * kOverheadBytes;
}

std::size_t Associations::seal(Instant now, const Train& train, MutableByteSpan out) {
  LEEWAY_ASSERT(knows(train.to) && sealed_bytes(train) <= out.size());
  Association& association = by_slot_[train.to].sending();
  Pieces pieces(train.slices);
  std::size_t used = 0;
  for (std::size_t at = 0; at < train.total_bytes; at += train.segment_bytes) {
    const std::size_t bytes = std::min(train.segment_bytes, train.total_bytes - at);
    association.seal(pieces.take(bytes), out.subspan(used, bytes + kOverheadBytes));
    used += bytes + kOverheadBytes;
    ++counters_.sealed;
  }
  if (association.has_served()) [[unlikely]]
    wake_by(now);
  return used;
}

std::size_t Associations::seal_path_message(Rank slot, ByteSpan message, MutableByteSpan out) {
  const Slice piece{message.data(), message.size()};
  return seal_path_message(slot, std::span(&piece, 1), out);
}

std::size_t Associations::seal_path_message(Rank slot, std::span<const Slice> pieces,
                                            MutableByteSpan out) {
  std::size_t bytes = kOverheadBytes;
  for (const Slice& piece : pieces) bytes += piece.bytes;
  LEEWAY_ASSERT(knows(slot) && out.size() >= bytes);
  by_slot_[slot].sending().seal(pieces, out.first(bytes), /*path_message=*/true);
  ++counters_.sealed;
  return bytes;
}

MutableByteSpan Associations::open(Instant now, Rank slot, MutableByteSpan datagram) {
  const Opened opened = open_for(now, slot, /*anywhere=*/false, datagram);
  return opened.path_message ? MutableByteSpan() : opened.bytes;
}

Associations::Opened Associations::open_from_anywhere(Instant now, Rank hint,
                                                      MutableByteSpan datagram) {
  return open_for(now, hint, /*anywhere=*/true, datagram);
}

// Tries to open a datagram with the keys of each peer that has its tag. A wrong key spoils the
// bytes. So if several peers have the tag, each further attempt begins with a copy of the datagram.
Associations::Opened Associations::open_for(Instant now, Rank slot, bool anywhere,
                                            MutableByteSpan datagram) {
  Header header;
  Refusal refusal = decode(datagram, header);
  Opened opened;
  if (refusal == Refusal::none) {
    std::size_t owners = 0;
    for_each_with(header.tag, [&](const Entry&) { ++owners; });
    refusal = owners == 0 ? Refusal::unknown_tag : Refusal::wrong_address;
    if (owners > 1) copy_.assign(datagram.begin(), datagram.end());
    bool is_spoiled = false;
    const auto attempt = [&](const Entry& entry) {
      if (opened.from != kNoRank) return;
      const std::uint64_t before = by_slot_[entry.slot].met[entry.met].association->newest_opened();
      if (std::exchange(is_spoiled, true)) std::copy(copy_.begin(), copy_.end(), datagram.begin());
      refusal = open_by(now, entry, header, datagram);
      if (refusal != Refusal::none) return;
      opened = {entry.slot, datagram.subspan(kHeaderBytes, datagram.size() - kOverheadBytes),
                header.path_message, header.counter > before};
      if (header.path_message && take_message(now, entry, opened.bytes)) opened.bytes = {};
    };
    for_each_with(header.tag, [&](const Entry& entry) {
      if (entry.slot == slot) attempt(entry);
    });
    for_each_with(header.tag, [&](const Entry& entry) {
      if (anywhere && entry.slot != slot) attempt(entry);
    });
  }
  if (opened.from != kNoRank) {
    ++counters_.opened;
  } else {
    ++counters_.refused[static_cast<std::size_t>(refusal)];
  }
  return opened;
}

}  // namespace leeway::seal
