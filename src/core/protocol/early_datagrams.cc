#include "protocol/early_datagrams.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/limits.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {
namespace {

constexpr std::size_t kShare = limits::kEarlySlotsPerPeer;

}  // namespace

EarlyDatagrams::EarlyDatagrams(int peers, std::size_t datagram_bytes)
    : datagram_bytes_(datagram_bytes),
      slots_(static_cast<std::size_t>(peers) * kShare),
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots_.size() * datagram_bytes)) {}

EarlyDatagrams::Fate EarlyDatagrams::judge(Rank from, const wire::DataHeader& header,
                                           std::uint32_t opened_below, ByteSpan datagram) {
  const auto ahead = static_cast<std::int32_t>(header.round - opened_below);
  if (ahead < 0) return Fate::closed;
  if (ahead >= std::int32_t{limits::kRoundsAheadMax}) return Fate::future;
  const bool point = header.kind == wire::FlowKind::point;
  const Key key{
      .number = header.round, .message = point, .message_tag = point ? header.message_tag : 0};
  const std::uint64_t part = static_cast<std::uint64_t>(header.kind) << 32 | header.index.value;
  return put(from, key, part, datagram) ? Fate::kept : Fate::dropped;
}

bool EarlyDatagrams::put(Rank from, const Key& key, std::uint64_t part, ByteSpan datagram) {
  const std::size_t first = std::size_t{from} * kShare;
  if (datagram.empty() || datagram.size() > datagram_bytes_ || first >= slots_.size()) return false;
  const std::span slots = std::span(slots_).subspan(first, kShare);
  const auto holds_it = [&](const Slot& slot) {
    return slot.bytes != 0 && slot.part == part && slot.key == key;
  };
  auto slot = std::find_if(slots.begin(), slots.end(), holds_it);
  if (slot == slots.end()) {
    slot = std::find_if(slots.begin(), slots.end(), [](const Slot& any) { return any.bytes == 0; });
    if (slot == slots.end()) return false;
    ++held_;
  }
  *slot = {key, part, static_cast<std::uint32_t>(datagram.size())};
  const std::size_t at = first + static_cast<std::size_t>(slot - slots.begin());
  std::memcpy(memory_.get() + at * datagram_bytes_, datagram.data(), datagram.size());
  return true;
}

void EarlyDatagrams::take_collective(std::uint32_t number, const Use& use) {
  take_slots(0, slots_.size(), {.number = number}, use);
}

void EarlyDatagrams::take_message(Rank from, std::uint32_t tag, std::uint32_t number,
                                  const Use& use) {
  const std::size_t first = std::size_t{from} * kShare;
  take_slots(first, first + kShare, {.number = number, .message = true, .message_tag = tag}, use);
}

void EarlyDatagrams::take_slots(std::size_t first, std::size_t last, const Key& key,
                                const Use& use) {
  for (std::size_t i = first; held_ > 0 && i < last; ++i) {
    if (slots_[i].bytes == 0 || slots_[i].key != key) continue;
    const ByteSpan datagram(memory_.get() + i * datagram_bytes_, slots_[i].bytes);
    release(slots_[i]);
    use(static_cast<Rank>(i / kShare), datagram);
  }
}

void EarlyDatagrams::skip_collectives_below(std::uint32_t number) {
  for (std::size_t i = 0; held_ > 0 && i < slots_.size(); ++i) {
    const Key& key = slots_[i].key;
    if (slots_[i].bytes != 0 && !key.message && after(number, key.number)) release(slots_[i]);
  }
}

void EarlyDatagrams::for_each_message(
    std::uint32_t tag, const std::function<void(Rank from, std::uint32_t number)>& visit) const {
  for (std::size_t i = 0; held_ > 0 && i < slots_.size(); ++i) {
    const Key& key = slots_[i].key;
    if (slots_[i].bytes != 0 && key.message && key.message_tag == tag)
      visit(static_cast<Rank>(i / kShare), key.number);
  }
}

void EarlyDatagrams::release(Slot& slot) {
  slot.bytes = 0;
  --held_;
}

}  // namespace leeway::protocol
