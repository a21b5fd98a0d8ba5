// Sends and receives that a caller submits as one operation, which is done when all of them are.
// Call pair_own(), then begin(); messages report by on_done().
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "collective/request.h"
#include "leeway/message.h"

namespace leeway::collective {

class MessageGroup {
 public:
  // `exchange` must be of that kind. Its options apply to every message, except for the tags.
  explicit MessageGroup(const OperationSpec& exchange);
  MessageGroup(const MessageGroup&) = delete;
  MessageGroup& operator=(const MessageGroup&) = delete;

  // All messages, in the caller's order.
  std::vector<Request>& messages() { return messages_; }

  // Pairs the messages that the rank sends itself: the n-th send of a tag is for the n-th receive
  // of that tag. Returns kInvalidArgument if one lacks the other, or does not fit it.
  Status pair_own(Rank self);
  bool is_own(const Request& message) const { return message.spec.peer == self_; }
  // Begins: copies the messages that the rank sends itself. `outcome` is done when all messages
  // are.
  void begin(Instant now, Request& outcome);
  // Call it when a message of the group is done.
  void on_done(const Request& message, Instant now);

 private:
  struct Pair {
    std::size_t send;  // places in messages_
    std::size_t receive;
  };

  void complete(Instant now);
  Status overdue() const;
  void fill_report(Instant now) const;

  std::vector<Request> messages_;
  std::vector<Pair> own_;
  Rank self_ = kNoRank;
  Request* outcome_ = nullptr;
  std::size_t left_ = 0;  // messages that are not done
  Status failure_;        // the first one that is not about the group's deadline
};

}  // namespace leeway::collective
