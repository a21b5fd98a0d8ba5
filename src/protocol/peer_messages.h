// The messages (send/recv) between this rank and one peer. Any number may be open; only the oldest
// of each direction talk, so that what a datagram or a wake-up costs does not grow with what is
// posted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/contracts.h"
#include "base/limits.h"
#include "base/time.h"
#include "protocol/round.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {

// Open messages of one direction, by rising number. Allocates only in push().
class MessageList {
 public:
  std::size_t size() const { return rounds_.size() - first_; }
  bool empty() const { return size() == 0; }
  Round& operator[](std::size_t i) const { return *rounds_[first_ + i]; }

  // How many, from the oldest on, talk.
  std::size_t talking() const { return std::min<std::size_t>(size(), limits::kTalkingMessagesMax); }

  void push(Round& round) {
    if (first_ > rounds_.size() / 2) {
      rounds_.erase(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    rounds_.push_back(&round);
  }

  // Null: not open.
  Round* find(std::uint32_t number) const {
    const auto at = lower_bound(number);
    return at != rounds_.end() && (*at)->number == number ? *at : nullptr;
  }

  // Returns the place in the list that it had.
  std::size_t erase(const Round& round) {
    const auto at = lower_bound(round.number);
    LEEWAY_ASSERT(at != rounds_.end() && *at == &round);
    const auto place = static_cast<std::size_t>(at - begin());
    if (place == 0) {
      ++first_;
    } else {
      rounds_.erase(at);
    }
    return place;
  }

 private:
  std::vector<Round*>::const_iterator begin() const {
    return rounds_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  std::vector<Round*>::const_iterator lower_bound(std::uint32_t number) const {
    return std::lower_bound(
        begin(), rounds_.end(), number,
        [](const Round* round, std::uint32_t wanted) { return after(wanted, round->number); });
  }

  std::vector<Round*> rounds_;
  std::size_t first_ = 0;  // those before it are closed
};

struct PeerMessages {
  MessageList sends;
  MessageList receives;
  std::uint32_t sends_opened = 0;  // ever: the next one's number
  std::uint32_t receives_opened = 0;
  // No later than the earliest deadline of those that are open.
  Instant deadline_at = Instant::infinite_future();
  Instant reported_at{0};  // when a report last announced the receives to the peer

  MessageList& list_of(const Round& round) { return round.plan->point_send ? sends : receives; }
};

}  // namespace leeway::protocol
