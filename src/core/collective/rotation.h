// Queue of members that may have data to send, each served in turn. A turn allocates nothing.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/contracts.h"
#include "collective/member.h"

namespace leeway::collective {

class Rotation {
 public:
  // Call before the number of members grows to `members`.
  void make_room(std::size_t members) { queue_.reserve(2 * members); }

  // Puts the member behind the others, unless it waits already.
  void add(Member& member) {
    if (std::exchange(member.sends_, true)) return;
    if (queue_.size() == queue_.capacity()) drop_past();  // leaves room for all members
    LEEWAY_ASSERT(queue_.size() < queue_.capacity());
    queue_.push_back(&member);
  }
  // Takes out the first member; null if none waits.
  Member* next() {
    if (first_ == queue_.size()) {
      queue_.clear();
      first_ = 0;
      return nullptr;
    }
    Member* const member = queue_[first_++];
    LEEWAY_ASSERT(member->sends_);
    member->sends_ = false;
    return member;
  }
  void remove(const Member& member) {
    drop_past();
    std::erase(queue_, &member);
  }
  bool empty() const { return first_ == queue_.size(); }
  std::span<Member* const> waiting() const { return std::span(queue_).subspan(first_); }

 private:
  void drop_past() {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<Member*> queue_;  // from first_ on
  std::size_t first_ = 0;
};

}  // namespace leeway::collective
