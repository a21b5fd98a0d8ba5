#include "seal/associations.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/limits.h"

namespace leeway::seal {
namespace {

// A train has two slices for each datagram at most (protocol/train_buffer.h), so a datagram has as
// many pieces at most as a train has slices.
constexpr std::size_t kPiecesMax = 256;

std::size_t datagrams_of(const Train& train) {
  return (train.total_bytes + train.segment_bytes - 1) / train.segment_bytes;
}

// The slices of a train, cut at the ends of its datagrams.
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
    if (by_tag_[at].tag == tag) visit(by_tag_[at].slot);
  }
}

void Associations::meet(Instant now, Rank slot, const PairKeys& keys, const CipherMaker& maker) {
  LEEWAY_ASSERT(!knows(slot));
  if (slot >= by_slot_.size()) by_slot_.resize(slot + std::size_t{1});
  by_slot_[slot] = std::make_unique<Association>(now, keys, maker, lane_, rotation_);
  for_each_with(by_slot_[slot]->inbound_tag(),
                [this](Rank) { copy_.reserve(limits::kDatagramBytesMax + kOverheadBytes); });
  if (by_tag_.size() < 2 * (entries_ + 1)) grow();
  insert({by_slot_[slot]->inbound_tag(), slot});
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

// Where addresses do not change, the tag must be that of the process whose address it is.
Refusal Associations::find(const Header& header, Rank slot) const {
  Refusal refusal = Refusal::unknown_tag;
  for_each_with(header.tag, [&](Rank known) {
    if (refusal != Refusal::none) refusal = known == slot ? Refusal::none : Refusal::wrong_address;
  });
  return refusal;
}

Refusal Associations::decode(ByteSpan datagram, Header& header) const {
  Refusal refusal = Refusal::none;
  if (const auto decoded = decode_header(datagram, refusal)) header = *decoded;
  return refusal == Refusal::none && header.lane != lane_ ? Refusal::form : refusal;
}

std::size_t Associations::sealed_bytes(const Train& train) {
  return train.total_bytes + datagrams_of(train) * kOverheadBytes;
}

std::size_t Associations::seal(Instant now, const Train& train, MutableByteSpan out) {
  LEEWAY_ASSERT(knows(train.to) && sealed_bytes(train) <= out.size());
  Association& association = *by_slot_[train.to];
  association.on_train(now);
  Pieces pieces(train.slices);
  std::size_t used = 0;
  for (std::size_t at = 0; at < train.total_bytes; at += train.segment_bytes) {
    const std::size_t bytes = std::min(train.segment_bytes, train.total_bytes - at);
    association.seal(pieces.take(bytes), out.subspan(used, bytes + kOverheadBytes));
    used += bytes + kOverheadBytes;
    ++counters_.sealed;
  }
  return used;
}

std::size_t Associations::seal_path_message(Instant now, Rank slot, ByteSpan message,
                                            MutableByteSpan out) {
  const Slice piece{message.data(), message.size()};
  return seal_path_message(now, slot, std::span(&piece, 1), out);
}

std::size_t Associations::seal_path_message(Instant now, Rank slot, std::span<const Slice> pieces,
                                            MutableByteSpan out) {
  std::size_t bytes = kOverheadBytes;
  for (const Slice& piece : pieces) bytes += piece.bytes;
  LEEWAY_ASSERT(knows(slot) && out.size() >= bytes);
  Association& association = *by_slot_[slot];
  association.on_train(now);
  association.seal(pieces, out.first(bytes), /*path_message=*/true);
  ++counters_.sealed;
  return bytes;
}

MutableByteSpan Associations::open(Instant now, Rank slot, MutableByteSpan datagram) {
  Header header;
  Refusal refusal = decode(datagram, header);
  if (refusal == Refusal::none && header.path_message) refusal = Refusal::form;
  if (refusal == Refusal::none) refusal = find(header, slot);
  if (refusal == Refusal::none) refusal = by_slot_[slot]->open(now, header, datagram);
  if (refusal != Refusal::none) {
    ++counters_.refused[static_cast<std::size_t>(refusal)];
    return {};
  }
  ++counters_.opened;
  return datagram.subspan(kHeaderBytes, datagram.size() - kOverheadBytes);
}

// Opening spoils the bytes if the key is wrong. So where several peers have the tag, all but the
// peer at that address try a copy.
Associations::Opened Associations::open_from_anywhere(Instant now, Rank hint,
                                                      MutableByteSpan datagram) {
  Header header;
  Refusal refusal = decode(datagram, header);
  Rank from = kNoRank;
  bool newest = false;
  if (refusal == Refusal::none) {
    std::size_t owners = 0;
    bool hinted = false;
    for_each_with(header.tag, [&](Rank slot) {
      ++owners;
      hinted |= slot == hint;
    });
    refusal = Refusal::unknown_tag;
    if (owners > 1) copy_.assign(datagram.begin(), datagram.end());
    const auto attempt = [&](Rank slot) {
      const std::uint64_t before = by_slot_[slot]->newest_opened();
      if (refusal != Refusal::unknown_tag) std::copy(copy_.begin(), copy_.end(), datagram.begin());
      refusal = by_slot_[slot]->open(now, header, datagram);
      if (refusal != Refusal::none) return;
      from = slot;
      newest = header.counter > before;
    };
    if (hinted) attempt(hint);
    for_each_with(header.tag, [&](Rank slot) {
      if (from == kNoRank && slot != hint) attempt(slot);
    });
  }
  if (from == kNoRank) {
    ++counters_.refused[static_cast<std::size_t>(refusal)];
    return {};
  }
  ++counters_.opened;
  return {from, datagram.subspan(kHeaderBytes, datagram.size() - kOverheadBytes),
          header.path_message, newest};
}

}  // namespace leeway::seal
