// Holds receives from any rank until their sender is known. When a message arrives for which no
// receive is posted, the first receive of its tag is posted for the message's sender. All later
// receives of the tag wait their turn here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "base/time.h"
#include "collective/request.h"
#include "protocol/endpoint.h"

namespace leeway::collective {

class AnySource {
 public:
  explicit AnySource(protocol::Endpoint& endpoint) : endpoint_(endpoint) {}

  // Returns true if the receive must wait here, because its message may come from any rank, or
  // because other receives of its tag wait here already.
  bool holds(const OperationSpec& spec) const;
  void push(Instant now, Request& receive);
  bool empty() const { return queues_.empty(); }

  // Calls post(receive) for each receive of this tag that is first in the queue and has a known
  // sender.
  using Post = std::function<void(Request& receive)>;
  void match(std::uint32_t tag, const Post& post);
  // Fails the receives whose deadline has come, or all receives if no other rank is left. Also asks
  // the ranks, at growing intervals, which messages they send.
  void on_wake(Instant now);
  // Time at which on_wake() is due; infinite future if never.
  Instant wake_at() const {
    return empty() ? Instant::infinite_future() : std::min(deadline_at_, ask_at_);
  }
  void cancel_all(Instant now, const Status& status);

 private:
  void ask(Instant now);
  // Ends each receive with status_of(receive).
  template <typename StatusOf>
  void end_all(Instant now, const StatusOf& status_of);
  void drop_empty();

  protocol::Endpoint& endpoint_;
  std::map<std::uint32_t, std::deque<Request*>> queues_;  // by tag, none empty
  Instant deadline_at_ = Instant::infinite_future();      // no later than their earliest deadline
  Instant ask_at_ = Instant::infinite_future();
  std::uint32_t tries_ = 0;
  bool alone_ = false;  // all other ranks were gone at the latest call of ask()
};

}  // namespace leeway::collective
