// Receives from any rank. Each waits until a message of its tag is heard of that nobody receives,
// and is then posted for the rank that sent it. Later receives of the same tag wait behind it.
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

  // Whether a receive must wait here: it is from any rank, or one of its tag is.
  bool holds(const OperationSpec& spec) const;
  void push(Instant now, Request& receive);
  bool empty() const { return queues_.empty(); }

  // Hands receives to `post` whose rank is known: all that may be posted now.
  using Post = std::function<void(Request& receive)>;
  void match(const Post& post);
  // Fails receives whose deadline has come, or all of them where no other rank is left, and asks
  // ranks now and then what they send.
  void on_wake(Instant now);
  // When on_wake() is due; never: infinite future.
  Instant wake_at() const {
    return empty() ? Instant::infinite_future() : std::min(deadline_at_, ask_at_);
  }
  void cancel_all(Instant now, const Status& status);

 private:
  void ask(Instant now);
  void fail_all(Instant now);
  void drop_empty();

  protocol::Endpoint& endpoint_;
  std::map<std::uint32_t, std::deque<Request*>> queues_;  // by tag, none empty
  Instant deadline_at_ = Instant::infinite_future();      // no later than the earliest of them
  Instant ask_at_ = Instant::infinite_future();
  std::uint32_t tries_ = 0;
  bool alone_ = false;  // it was, when ranks were to be asked last
};

}  // namespace leeway::collective
