// Tags for which receives from any rank wait, and the messages heard with them.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "protocol/round_table.h"

namespace leeway::protocol {

class WatchedTags {
 public:
  // `rounds` must outlive this object.
  WatchedTags(int size, RoundTable& rounds) : size_(size), rounds_(rounds) {}

  void watch(std::uint32_t tag) { tags_.insert(tag); }
  void forget(std::uint32_t tag) { tags_.erase(tag); }
  bool any() const { return !tags_.empty(); }

  // Notes that a peer sends message `number` of this tag. Tags that are not watched are ignored, so
  // that a peer cannot make this process use memory with made-up tags.
  void note(Rank from, std::uint32_t tag, std::uint32_t number);
  // Returns a rank that sent a message with this watched tag for which no receive is posted.
  // Rotates over ranks, so that none starves.
  std::optional<Rank> sender_of(std::uint32_t tag);
  // Returns true if a message of a watched tag was noted since take_heard() was last called.
  bool heard() const { return !heard_.empty(); }
  // Sets `tags` to those of which a message was noted since the last call. A tag may stand there
  // more than once.
  void take_heard(std::vector<std::uint32_t>& tags) {
    tags.clear();
    tags.swap(heard_);
  }

 private:
  int size_;
  RoundTable& rounds_;
  std::unordered_set<std::uint32_t> tags_;
  std::vector<std::uint32_t> heard_;
  Rank latest_sender_ = 0;  // last rank that sender_of() named
};

}  // namespace leeway::protocol
