#include "protocol/peer_messages.h"

namespace leeway::protocol {

PeerMessages::PeerMessages() : zero_(&streams_[0]) {
  given_up_.reserve(limits::kGivenUpMax);
  unmatched_.reserve(limits::kUnmatchedMax);
  refused_.reserve(limits::kGivenUpMax);
}

const MessageStream* PeerMessages::find_other(std::uint32_t tag) const {
  const auto at = streams_.find(tag);
  return at == streams_.end() ? nullptr : &at->second;
}

MessageStream& PeerMessages::stream(std::uint32_t tag) {
  if (MessageStream* const known = find(tag); known != nullptr) return *known;
  MessageStream& made = streams_[tag];
  made.tag = tag;
  for (const wire::OpenedStream& said : std::span(said_).first(said_count_)) {
    if (said.tag == tag) made.peer_opened_below = said.opened_below;
  }
  return made;
}

bool PeerMessages::push(Round& round) {
  MessageStream& stream = *round.stream;
  if (!stream.open()) open_.push_back(&stream);
  MessageList& list = stream.list_of(round);
  list.push(round);
  if (list.size() > limits::kTalkingMessagesMax) return false;
  talking_.push_back(&round);  // the newest message of all
  return true;
}

void PeerMessages::run_ahead(Round& round) {
  round.ahead = true;
  ++ahead_;
}

Round* PeerMessages::erase(Round& round) {
  ahead_ -= round.ahead;
  MessageStream& stream = *round.stream;
  MessageList& list = stream.list_of(round);
  constexpr std::size_t kLast = limits::kTalkingMessagesMax - 1;
  const std::size_t place = list.erase(round);
  if (!stream.open()) open_.erase(std::find(open_.begin(), open_.end(), &stream));
  if (place > kLast) return nullptr;
  talking_.erase(std::find(talking_.begin(), talking_.end(), &round));
  if (list.size() <= kLast) return nullptr;
  Round& next = list[kLast];
  const auto older = [](const Round* a, const Round* b) { return a->opening < b->opening; };
  talking_.insert(std::upper_bound(talking_.begin(), talking_.end(), &next, older), &next);
  return &next;
}

void PeerMessages::touch(MessageStream& stream) {
  if (stream.tag == 0) return;
  const auto end = touched_.begin() + static_cast<std::ptrdiff_t>(touched_count_);
  auto at = std::find(touched_.begin(), end, &stream);
  if (at == end && touched_count_ < touched_.size()) ++touched_count_;
  if (at == touched_.end()) --at;  // the stream touched longest ago makes room
  std::copy_backward(touched_.begin(), at, at + 1);
  touched_.front() = &stream;
}

void PeerMessages::rotate() {
  ++report_from_;
  const auto said = [](GivenUp& one) { return --one.reports <= 0; };
  std::erase_if(given_up_, said);
  std::erase_if(refused_, said);
}

void PeerMessages::give_up(std::uint32_t tag, std::uint32_t number) {
  std::erase_if(given_up_,
                [&](const GivenUp& one) { return one.tag == tag && one.number == number; });
  if (given_up_.size() == limits::kGivenUpMax) given_up_.erase(given_up_.begin());
  const auto known = std::ranges::find_if(
      unmatched_, [&](const GivenUp& one) { return one.tag == tag && one.number == number; });
  given_up_.push_back({.tag = tag, .number = number});
  if (known != unmatched_.end()) given_up_.back() = *known;
  given_up_.back().reports = limits::kGivenUpReports;
}

void PeerMessages::give_up_unmatched(const Round& round) {
  if (unmatched_.size() == limits::kUnmatchedMax) unmatched_.erase(unmatched_.begin());
  unmatched_.push_back(
      {.tag = round.plan->message_tag, .number = round.number, .unmatched = round.plan->tag});
  give_up(round.plan->message_tag, round.number);
}

void PeerMessages::refuse(const Round& round) {
  if (refused_.size() == limits::kGivenUpMax) refused_.erase(refused_.begin());
  refused_.push_back({.tag = round.plan->message_tag,
                      .number = round.number,
                      .reports = limits::kRefusedReports,
                      .unmatched = round.plan->tag});
}

void PeerMessages::remember(std::span<const wire::OpenedStream> said) {
  said_count_ = said.size();
  std::copy(said.begin(), said.end(), said_.begin());
}

}  // namespace leeway::protocol
