#include "protocol/watched_tags.h"

#include "base/contracts.h"
#include "base/limits.h"

namespace leeway::protocol {

void WatchedTags::note(Rank from, std::uint32_t tag, std::uint32_t number) {
  if (!tags_.contains(tag)) return;
  if (!rounds_.has_room_for(from, tag)) return;
  MessageStream& stream = rounds_.make_messages(from).stream(tag);
  const std::uint32_t ahead = number - stream.receives_opened;
  if (ahead >= limits::kMessagesHeardMax) return;
  if (after(number + 1, stream.heard_below)) stream.heard_below = number + 1;
  if (heard_.empty() || heard_.back() != tag) heard_.push_back(tag);
}

std::optional<Rank> WatchedTags::sender_of(std::uint32_t tag) {
  LEEWAY_ASSERT(latest_sender_ < size_);
  for (int step = 1; step <= size_; ++step) {
    const auto peer = static_cast<Rank>((latest_sender_ + step) % size_);
    const MessageStream* const stream = rounds_.stream(peer, tag);
    if (stream == nullptr || !stream->unmatched()) continue;
    latest_sender_ = peer;
    return peer;
  }
  return std::nullopt;
}

}  // namespace leeway::protocol
