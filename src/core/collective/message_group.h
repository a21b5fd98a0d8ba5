// Sends and receives that a caller submits as one operation (an exchange), which is done when all
// of them are. Call pair_own(), then begin(), then on_done() for each message.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "collective/request.h"
#include "leeway/message.h"

namespace leeway::collective {

class MessageGroup {
 public:
  // `exchange` must be of kind `exchange`. Its options apply to every message, except for the tags.
  explicit MessageGroup(const OperationSpec& exchange);
  MessageGroup(const MessageGroup&) = delete;
  MessageGroup& operator=(const MessageGroup&) = delete;

  // All messages, in the caller's order.
  std::vector<Request>& messages() { return messages_; }

  // Pairs the messages that this rank sends to itself: the n-th send of a tag with the n-th receive
  // of that tag. Returns kInvalidArgument if a message has no partner, or type or length do not
  // fit.
  Status pair_own(Rank self);
  bool is_own(const Request& message) const { return message.spec.peer == self_; }
  // Begins the group, and copies the messages that this rank sends to itself. `outcome` is done
  // when all messages are.
  void begin(Instant now, Request& outcome);
  // Call it when a message is done. The last one ends the group.
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
