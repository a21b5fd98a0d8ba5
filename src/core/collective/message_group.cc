#include "collective/message_group.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/duration_text.h"
#include "collective/operation_plan.h"

namespace leeway::collective {
namespace {

OperationSpec spec_of(const leeway::Message& message, const OperationSpec& exchange) {
  const bool sends = message.kind == leeway::Message::Kind::send;
  OperationSpec spec;
  spec.kind = sends ? OperationKind::send : OperationKind::recv;
  spec.input = message.input;
  spec.output = message.output;
  spec.peer = message.peer;
  spec.options = exchange.options;
  spec.options.tag = message.tag;
  spec.contents = exchange.contents;
  spec.grouped = true;
  return spec;
}

bool sends(const Request& message) {
  return message.spec.kind == OperationKind::send;
}

Status misfit(std::size_t at, const char* what) {
  return Status::error(StatusCode::kInvalidArgument, "exchange: message %zu: %s", at, what);
}

}  // namespace

MessageGroup::MessageGroup(const OperationSpec& exchange) : messages_(exchange.messages->size()) {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    messages_[i].spec = spec_of((*exchange.messages)[i], exchange);
    messages_[i].member_of = this;
  }
}

Status MessageGroup::pair_own(Rank self) {
  self_ = self;
  std::map<std::uint32_t, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> by_tag;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!is_own(messages_[i])) continue;
    auto& [sent, received] = by_tag[messages_[i].spec.options.tag];
    (sends(messages_[i]) ? sent : received).push_back(i);
  }
  for (const auto& [tag, both] : by_tag) {
    const auto& [sent, received] = both;
    const std::size_t paired = std::min(sent.size(), received.size());
    if (sent.size() > paired)
      return misfit(sent[paired], "the rank's send to itself has no receive in the same group");
    if (received.size() > paired)
      return misfit(received[paired], "the rank's receive from itself has no send in the group");
    for (std::size_t n = 0; n < paired; ++n) {
      const OperationSpec& from = messages_[sent[n]].spec;
      const OperationSpec& to = messages_[received[n]].spec;
      if (from.input.dtype != to.output.dtype)
        return misfit(received[n], "the rank sends itself another type than it receives");
      if (from.input.count > to.output.count)
        return misfit(received[n], "the rank sends itself more than the receive has room for");
      own_.push_back({sent[n], received[n]});
    }
  }
  return Status();
}

void MessageGroup::begin(Instant now, Request& outcome) {
  outcome_ = &outcome;
  left_ = messages_.size();
  for (const Pair& pair : own_) {
    Request& from = messages_[pair.send];
    Request& to = messages_[pair.receive];
    const ConstTensorView sent = from.spec.input;
    if (sent.bytes() > 0 && from.spec.contents)
      std::memmove(to.spec.output.data, sent.data, sent.bytes());
    for (Request* message : {&from, &to}) {
      message->report.messages.push_back(
          {.source = self_, .tag = message->spec.options.tag, .count = sent.count});
      message->finish(Status(), now);
    }
  }
  if (messages_.empty()) complete(now);
}

void MessageGroup::on_done(const Request& message, Instant now) {
  const StatusCode code = message.status.code();
  // If a message timed out before the group's own deadline, its peer's deadline had passed, which
  // counts as a failure. Messages that the group's own deadline ends are left to overdue().
  const bool overdue = code == StatusCode::kDeadlineExceeded && now >= deadline_of(message);
  if (failure_.ok() && code != StatusCode::kOk && !overdue) {
    const auto place = static_cast<std::size_t>(&message - messages_.data());
    failure_ = Status::error(code, "exchange: message %zu of %zu: %s", place, messages_.size(),
                             message.status.c_str());
  }
  if (--left_ == 0) complete(now);
}

// Returns the error of a group whose deadline passed. The text names the rank that has the largest
// number of messages that are not done.
Status MessageGroup::overdue() const {
  struct Owed {
    std::size_t receives = 0;
    std::size_t sends = 0;
  };
  std::map<Rank, Owed> owed;
  std::size_t late = 0;
  for (const Request& message : messages_) {
    if (message.status.ok()) continue;
    ++late;
    Owed& of_peer = owed[message.spec.peer];
    ++(sends(message) ? of_peer.sends : of_peer.receives);
  }
  if (late == 0) return Status();
  const auto most = std::max_element(owed.begin(), owed.end(), [](const auto& a, const auto& b) {
    return a.second.receives + a.second.sends < b.second.receives + b.second.sends;
  });
  const auto deadline = in_milliseconds(outcome_->spec.options.delivery.deadline);
  if (most->first == kAnyRank) {
    return Status::error(StatusCode::kDeadlineExceeded,
                         "rank %u: exchange of %zu messages: deadline of %s passed: %zu are "
                         "not done, %zu of them receives from any rank that no rank sent",
                         self_, messages_.size(), deadline.data(), late, most->second.receives);
  }
  return Status::error(StatusCode::kDeadlineExceeded,
                       "rank %u: exchange of %zu messages: deadline of %s passed: %zu are not "
                       "done; rank %u owes %zu messages, and has not taken %zu",
                       self_, messages_.size(), deadline.data(), late, most->first,
                       most->second.receives, most->second.sends);
}

void MessageGroup::complete(Instant now) {
  fill_report(now);
  outcome_->finish(failure_.ok() ? overdue() : failure_, now);
}

void MessageGroup::fill_report(Instant now) const {
  CollectiveReport& report = outcome_->report;
  report.sequence = outcome_->sequence;
  report.estimator = outcome_->spec.options.estimator;
  report.codec = outcome_->spec.options.codec;
  report.times.total = report.times.spread = now - outcome_->submitted;
  std::map<Rank, PeerReport> peers;
  for (const Request& message : messages_) {
    const CollectiveReport& one = message.report;
    report.messages.insert(report.messages.end(), one.messages.begin(), one.messages.end());
    report.bytes_sent += one.bytes_sent;
    report.times.gate = std::max(report.times.gate, one.times.gate);
    for (const PeerReport& row : one.peers) {
      PeerReport& sum = peers[row.rank];
      sum.rank = row.rank;
      add_counts(row, sum);
    }
  }
  for (const auto& [rank, row] : peers) report.peers.push_back(row);
  set_losses(report);
}

}  // namespace leeway::collective
