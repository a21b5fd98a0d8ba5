#include "impairment/loss_list.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/read_number.h"

namespace leeway::impairment {
namespace {

// Limit on the number of entries, because every data packet is compared with each entry.
constexpr std::size_t kEntriesMax = 256;
constexpr std::uint32_t kPhaseMax = 2;

using Field = std::optional<std::uint32_t>;

// Removes and returns the text before `separator`, and drops the separator. Without a separator,
// takes the whole text.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return head;
}

bool parse_field(std::string_view text, std::uint32_t max, Field& field) {
  if (text == "*") return true;
  std::uint32_t value = 0;
  if (!read_number(text, value) || value > max) return false;
  field = value;
  return true;
}

bool matches(const Field& field, std::uint32_t value) {
  return !field || *field == value;
}

}  // namespace

bool LossList::parse_entry(std::string_view text, Entry& entry) {
  constexpr std::uint32_t kRankMax = limits::kPeersMax - 1;
  return parse_field(take_until(text, '>'), kRankMax, entry.source) &&
         parse_field(take_until(text, '/'), kRankMax, entry.destination) &&
         parse_field(take_until(text, '/'), UINT32_MAX, entry.round) &&
         parse_field(take_until(text, '/'), kPhaseMax, entry.phase) &&
         parse_field(text, limits::kFlowPacketsMax - 1, entry.index);
}

Result<LossList> LossList::parse(std::string_view text) {
  LossList list;
  while (!text.empty()) {
    const std::string_view item = take_until(text, ',');
    Entry entry;
    if (!parse_entry(item, entry)) {
      return Status::error(
          StatusCode::kInvalidArgument,
          "lost packet \"%.*s\": expected source>destination/round/phase/index with numbers or *, "
          "phase 0 (reduce), 1 (spread) or 2 (point to point)",
          static_cast<int>(std::min<std::size_t>(item.size(), 40)), item.data());
    }
    if (list.entries_.size() == kEntriesMax) {
      return Status::error(StatusCode::kInvalidArgument, "more than %zu lost packets listed",
                           kEntriesMax);
    }
    list.entries_.push_back(entry);
  }
  return list;
}

bool LossList::contains(const PacketAddress& packet) const {
  if (packet.control || packet.attempt != 0) return false;
  for (const Entry& entry : entries_) {
    if (matches(entry.source, packet.source) && matches(entry.destination, packet.destination) &&
        matches(entry.round, packet.round) && matches(entry.phase, packet.phase) &&
        matches(entry.index, packet.index.value)) {
      return true;
    }
  }
  return false;
}

}  // namespace leeway::impairment
