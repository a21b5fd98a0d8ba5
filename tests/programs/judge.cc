// Checks that a call's outcome is one that the public headers permit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "programs/lossy.h"
#include "programs/player.h"
#include "programs/underway.h"

namespace leeway::programs {
namespace {

using testing::TypedTensor;

std::uint64_t digest_of(ByteSpan bytes) {
  std::uint64_t digest = 1469598103934665603u;
  for (const std::byte one : bytes)
    digest = (digest ^ static_cast<std::uint64_t>(one)) * 1099511628211u;
  return digest | 1;
}

// With at most this many elements, an estimated variance may be negative.
constexpr std::size_t kFewElements = 4096;

// Describes what is wrong with a call's report, or returns an empty text.
std::string contradiction(const Step& step, const CollectiveReport& report) {
  const auto is_part = [](double value) { return value >= 0.0 && value <= 1.0; };
  if (!is_part(report.loss)) return "loss is " + std::to_string(report.loss);
  if (!is_part(report.loss_first_pass))
    return "loss_first_pass is " + std::to_string(report.loss_first_pass);
  for (const PeerReport& peer : report.peers) {
    if (peer.arrived > peer.expected)
      return "more arrived of rank " + std::to_string(peer.rank) + " than was expected";
    if (peer.repaired > peer.arrived)
      return "more was repaired of rank " + std::to_string(peer.rank) + " than arrived";
  }
  std::uint64_t packets = 0;
  double contributions = 0.0;
  for (std::size_t k = 0; k < report.contributors.histogram.size(); ++k) {
    packets += report.contributors.histogram[k];
    contributions += static_cast<double>(k * report.contributors.histogram[k]);
  }
  if (packets > 0 &&
      std::abs(contributions / static_cast<double>(packets) - report.contributors.mean) > 1e-6)
    return "the mean of contributors is not that of their histogram";
  // NaN means not measured. The estimate is unbiased, so with few elements it may be negative.
  if (std::isinf(report.variance_estimate) ||
      (report.variance_estimate < 0.0 && step.count > kFewElements))
    return "variance_estimate is " + std::to_string(report.variance_estimate);
  if (step.delivery != Delivery::Kind::exact) return {};
  if (report.loss != 0.0) return "an exact call with loss " + std::to_string(report.loss);
  if (report.elements_missing != 0) return "an exact call with elements_missing";
  if (report.deadline_cut) return "an exact call that was cut by its deadline";
  if (!report.complete) return "an exact call that is not complete";
  return {};
}

// Returns the ranks, as bits, that a text names as "rank N", directly followed by one of `words`.
unsigned ranks_before(std::string_view text, std::initializer_list<std::string_view> words) {
  unsigned ranks = 0;
  for (std::size_t at = 0; (at = text.find("rank ", at)) != std::string_view::npos;) {
    at += 5;
    const std::size_t behind = std::min(text.find_first_not_of("0123456789", at), text.size());
    if (behind == at) continue;
    const std::string_view rest = text.substr(behind);
    if (std::any_of(words.begin(), words.end(), [&](auto word) { return rest.starts_with(word); }))
      ranks |= 1u << std::stoi(std::string(text.substr(at, behind - at)));
  }
  return ranks;
}
unsigned ranks_said_gone(std::string_view text) {
  return ranks_before(text, {" is dead", " is gone", " left ", " has left ", " gave this "});
}
unsigned ranks_said_late(std::string_view text) {
  return ranks_before(text, {" gave it up at its own deadline"});
}

// A call may return this long after its deadline, because the machine may be busy.
constexpr std::chrono::seconds kSlack(3);

}  // namespace

// Records the error that a report predicts, and the true one. Both concern the result of a
// reduce_scatter, which is the rank's shard.
void Player::note_error(const Underway& one, const CollectiveReport& report,
                        const TypedTensor& got) {
  if (report.loss == 0.0 || std::isnan(report.variance_estimate)) return;
  TypedTensor wanted(one.step->type, got.count());
  expect(*one.step, one.rank, one.size, wanted);
  double squares = 0.0;
  for (std::size_t i = 0; i < got.count(); ++i)
    squares += (got.get(i) - wanted.get(i)) * (got.get(i) - wanted.get(i));
  squares /= static_cast<double>(got.count());
  Board::Error& error = board_.errors[static_cast<std::size_t>(one.step->estimator)];
  const double difference = report.variance_estimate - squares;
  ++error.calls;
  error.said += report.variance_estimate;
  error.true_square += squares;
  error.difference_square += difference * difference;
}

// Describes what is wrong with the error that a call returned.
std::string Player::odd_failure(const Underway& one, const Status& status) const {
  const Step& step = *one.step;
  const std::string text(status.text());
  if (text.empty()) return "an error without a text";
  const bool may_fail = step.may_fail || step.is_cut();
  if (!may_fail) return text;
  const std::vector<int>& members = groups_->of(step.comm);
  const unsigned gone = gone_from(step.comm);
  const auto all = [&](unsigned ranks, auto&& holds) {
    for (std::size_t i = 0; i < members.size(); ++i)
      if ((ranks >> i & 1) != 0 && !holds(i)) return false;
    return true;
  };
  const auto is_gone = [&](std::size_t i) { return (gone >> members[i] & 1) != 0; };
  if (!all(ranks_said_gone(text), is_gone)) return "a living rank is said to be gone: " + text;
  const auto is_cut = [&](std::size_t i) { return step.cuts_us[i] != 0; };
  if (!step.may_fail && !all(ranks_said_late(text), is_cut))
    return "a deadline that never came is said to have passed: " + text;
  switch (status.code()) {
    case StatusCode::kDeadlineExceeded:
      if (!step.may_fail && !is_cut(static_cast<std::size_t>(one.rank)) &&
          (text.find("Timed out") != std::string::npos ||
           text.find(" passed:") != std::string::npos))
        return "nobody told it that a peer's deadline had passed: " + text;
      return {};
    case StatusCode::kPeerLost:
      return gone != 0 ? "" : "no rank is gone: " + text;
    case StatusCode::kCancelled:
      return (gone >> rank_ & 1) != 0 ? "" : "nobody cancelled it: " + text;
    case StatusCode::kUnavailable:
      return step.may_fail ? "" : text;
    default:
      return "after a rank left or a deadline passed: " + text;
  }
}

std::string Player::odd_messages(Underway& one, const CollectiveReport& report) const {
  const Step& step = *one.step;
  for (std::size_t i = 0; i < one.call.messages.size(); ++i) {
    const Message& message = one.call.messages[i];
    const Envelope& letter = step.messages[one.envelopes[i]];
    if (i >= report.messages.size()) return "the report lacks message " + std::to_string(i);
    const MessageReport& said = report.messages[i];
    if (said.source != letter.from || said.count != letter.count || said.tag != letter.tag)
      return "the report of message " + std::to_string(i) + " says " + std::to_string(said.count) +
             " elements of rank " + std::to_string(said.source);
    if (message.kind == Message::Kind::send) continue;
    // Memory beyond the received elements must stay as it was.
    TypedTensor wanted(step.type, letter.count + letter.spare);
    const TypedTensor content = message_of(step, one.envelopes[i]);
    if (letter.count > 0)
      std::memcpy(wanted.view().data, content.bytes().data(), content.bytes().size());
    const std::string odd =
        difference(step, copy_of(step.type, message.output.data, wanted.count()), wanted);
    if (!odd.empty()) return "from rank " + std::to_string(letter.from) + " " + odd;
  }
  return {};
}

// Describes what is wrong with the outcome of a call that succeeded.
std::string Player::odd_success(const Underway& one, const CollectiveReport& report) {
  const Step& step = *one.step;
  const auto cell =
      static_cast<std::size_t>(number_) * kStepsMax + static_cast<std::size_t>(one.number);
  const bool has_cell = static_cast<std::size_t>(number_) < kProgramsOfAGroup &&
                        static_cast<std::size_t>(one.number) < kStepsMax;
  if (step.kind == Kind::barrier && has_cell) {
    for (const int member : groups_->of(step.comm))
      if ((board_.came[cell] >> member & 1) == 0)
        return "it is over before rank " + std::to_string(member) + " of the program came to it";
  }
  if (!is_collective(step.kind) || step.kind == Kind::barrier) return {};
  const TypedTensor got = copy_of(step.type, one.out, one.extent.output);
  TypedTensor wanted(step.type, one.extent.output);
  expect(step, one.rank, one.size, wanted);
  std::string odd;
  if (!step.is_lossy()) {
    odd = difference(step, got, wanted);
  } else {
    odd = lossy_difference({step, one.rank, one.size, got, one.before, wanted, report});
    if (report.deadline_cut && !step.is_cut() && !step.may_fail)
      return "no deadline came, and the report says that one cut it";
    // Only a deadline or a rank that is gone may end the repair of a bounded spread half.
    const bool repaired = step.spread == Delivery::Kind::bounded && report.elements_missing > 0;
    if (repaired && !report.deadline_cut && gone_from(step.comm) == 0)
      return "a deadline cut it, and the report does not say so";
    const bool counts = step.kind == Kind::reduce_scatter && !step.may_fail && !step.is_cut();
    if (odd.empty() && counts) note_error(one, report, got);
  }
  if (!odd.empty()) return odd;
  if (!step.in_place && step.kind != Kind::broadcast &&
      copy_of(step.type, one.in, one.extent.input) != one.sent)
    return "the input has changed";
  const bool alike = step.kind == Kind::all_reduce || step.kind == Kind::broadcast;
  // A lossy call that its deadline cut may lack elements, so its results may differ.
  if (!alike || !report.complete || !has_cell) return {};
  // All ranks of the step's communicator must have the same digest.
  std::atomic<std::uint64_t>& digest = board_.digests[cell];
  std::uint64_t before = 0;
  const std::uint64_t own = digest_of(got.bytes());
  if (!digest.compare_exchange_strong(before, own) && before != own)
    return "ranks hold different results";
  return {};
}

// Returns true if the call is lossy, and all ranks that make another call than this rank have left
// or will leave. The call may then succeed without them, as if their packets were lost.
bool Player::does_without_others(const Underway& one) const {
  const Step& step = *one.step;
  if (!step.may_fail || differing(step, false).delivery == Delivery::Kind::exact) return false;
  const std::vector<int>& members = groups_->of(step.comm);
  const unsigned gone = gone_from(step.comm);
  const unsigned like_us = (step.who >> one.rank & 1) != 0 ? step.who : ~step.who;
  for (std::size_t i = 0; i < members.size(); ++i)
    if ((like_us >> i & 1) == 0 && (gone >> members[i] & 1) == 0) return false;
  return true;
}

// Describes what is wrong with the outcome of a call in which ranks differ. A rank must get an
// error that says so, unless its call may end before the mismatch is found, or without the others.
std::string Player::odd_difference(const Underway& one, const Outcome& outcome) const {
  const Step& step = *one.step;
  const bool among = (step.who >> one.rank & 1) != 0;
  const std::string what =
      std::string("differs in ") + to_string(step.difference).data() + ", and ";
  if (outcome.ok()) {
    const bool may_be_ok =
        (!among && may_be_done_first(step, one.rank)) || does_without_others(one);
    return may_be_ok ? "" : what + "is ok";
  }
  const bool refused = among && step.difference == Difference::refused;
  const StatusCode due = refused ? StatusCode::kUnsupported : StatusCode::kMismatch;
  if (outcome.status().code() == due) return {};
  const std::string odd = odd_failure(one, outcome.status());
  return odd.empty() ? odd : what + odd;
}

// Describes what is wrong with the outcome of a message that does not match its receive. Both sides
// must fail, with one exception: a send of at most 64 KiB is done once it is copied.
std::string Player::odd_unlike(const Underway& one, const Outcome& outcome) const {
  const Envelope& letter = one.step->messages[0];
  constexpr std::size_t kCopiedBytesMax = std::size_t{64} << 10;  // communicator.h
  const bool may_be_done =
      letter.from == one.rank && letter.count * size_of(one.step->type) <= kCopiedBytesMax;
  if (outcome.ok()) return may_be_done ? "" : "it does not match, and is ok";
  if (outcome.status().code() == StatusCode::kMismatch) return {};
  const std::string odd = odd_failure(one, outcome.status());
  return odd.empty() ? odd : "it does not match, and " + odd;
}

bool Player::judge(Underway& one, const Outcome& outcome) {
  const Step& step = *one.step;
  at_ = std::max(at_, one.number);
  const auto wrong = [&](const std::string& why) {
    board_.fail(number_, one.number, rank_, std::string(to_string(step.kind)) + ": " + why);
    return false;
  };
  if (!one.input.whole() || !one.output.whole()) return wrong("memory beside a tensor is spoilt");
  for (Buffer& part : one.parts)
    if (!part.whole()) return wrong("memory beside a message is spoilt");
  const auto took = std::chrono::steady_clock::now() - one.begun;
  const auto cut = std::chrono::microseconds(step.cuts_us[static_cast<std::size_t>(one.rank)]);
  if (one.how == Way::How::blocking && cut.count() > 0 && took > cut + kSlack)
    return wrong("a deadline of " + std::to_string(cut.count()) + " us, and it took " +
                 std::to_string(std::chrono::duration<double>(took).count()) + " s");
  std::string odd;
  if (step.kind == Kind::mismatch) {
    odd = odd_difference(one, outcome);
  } else if (step.kind == Kind::message && !step.messages[0].matches()) {
    odd = odd_unlike(one, outcome);
  } else if (!outcome.ok()) {
    odd = odd_failure(one, outcome.status());
  } else {
    odd = contradiction(step, *outcome);
    if (!odd.empty()) odd = "the report: " + odd;
    if (odd.empty()) odd = odd_messages(one, *outcome);
    if (odd.empty()) odd = odd_success(one, *outcome);
  }
  return odd.empty() || wrong(odd);
}

}  // namespace leeway::programs
