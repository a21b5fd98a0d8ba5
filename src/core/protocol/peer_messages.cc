#include "protocol/peer_messages.h"

namespace leeway::protocol {

PeerMessages::PeerMessages(std::vector<Round*>& starting)
    : zero_(&streams_[0]), starting_(starting) {
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

void PeerMessages::push(Round& round, bool wanted) {
  const bool send = round.plan->point_send;
  MessageStream& stream = *round.stream;
  MessageList& list = stream.list(send);
  Direction& direction = towards(send);
  if (list.empty()) {
    list.open_at_ = direction.open.size();
    direction.open.push_back(&stream);
  }
  list.push(round);
  if (talking_.capacity() < ++open_count_) talking_.reserve(2 * open_count_);
  if (list.turn_ == MessageList::Turn::none) {
    if (stream.tag == 0 || direction.turns < limits::kTalkingTagsMax) {
      give_turn(stream, send);
    } else {
      list.turn_ = MessageList::Turn::waits;
      direction.waiting.push_back(&stream);
    }
  } else if (list.turn_ == MessageList::Turn::has && list.size() <= limits::kTalkingMessagesMax) {
    start(round);
  }
  if (wanted && list.size() <= limits::kTalkingMessagesMax) mention(round);
}

void PeerMessages::give_turn(MessageStream& stream, bool send) {
  MessageList& list = stream.list(send);
  list.turn_ = MessageList::Turn::has;
  if (stream.tag != 0) ++towards(send).turns;
  for (std::size_t i = 0; i < list.foremost(); ++i) start(list[i]);
}

void PeerMessages::start(Round& round) {
  if (round.talks) return;
  round.talks = true;
  starting_.push_back(&round);
  const auto older = [](const Round* a, const Round* b) { return a->opening < b->opening; };
  talking_.insert(std::upper_bound(talking_.begin(), talking_.end(), &round, older), &round);
}

void PeerMessages::mention(Round& round) {
  if (round.talks) return;
  const bool send = round.plan->point_send;
  if (!send && mentioned_receives_ == limits::kMentionedReceivesMax) return;
  mentioned_receives_ += !send;
  round.mentioned = true;
  start(round);
}

bool PeerMessages::mention_sends(MessageStream& stream, std::uint32_t opened_below) {
  const bool news = after(opened_below, stream.peer_opened_below);
  if (news) stream.peer_opened_below = opened_below;
  for (std::size_t i = 0; i < stream.sends.foremost(); ++i) {
    if (!after(stream.peer_opened_below, stream.sends[i].number)) break;
    mention(stream.sends[i]);
  }
  return news;
}

void PeerMessages::run_ahead(Round& round) {
  round.ahead = true;
  ++ahead_;
}

void PeerMessages::erase(Round& round) {
  ahead_ -= round.ahead;
  --open_count_;
  const bool send = round.plan->point_send;
  MessageStream& stream = *round.stream;
  MessageList& list = stream.list(send);
  const std::size_t place = list.erase(round);
  if (round.talks) {
    const auto older = [](const Round* a, const Round* b) { return a->opening < b->opening; };
    const auto at = std::lower_bound(talking_.begin(), talking_.end(), &round, older);
    LEEWAY_ASSERT(at != talking_.end() && *at == &round);
    talking_.erase(at);
    std::erase(starting_, &round);
    mentioned_receives_ -= round.mentioned && !send;
  }
  if (list.empty()) return close(stream, send);
  constexpr std::size_t kLast = limits::kTalkingMessagesMax - 1;
  if (place > kLast || list.size() <= kLast) return;
  Round& next = list[kLast];
  if (list.turn_ == MessageList::Turn::has) {
    start(next);
  } else if (send && after(stream.peer_opened_below, next.number)) {
    mention(next);
  }
}

// Passes the turn of a stream without open messages to the stream that has waited longest.
void PeerMessages::close(MessageStream& stream, bool send) {
  MessageList& list = stream.list(send);
  Direction& direction = towards(send);
  direction.open[list.open_at_] = direction.open.back();
  direction.open[list.open_at_]->list(send).open_at_ = list.open_at_;
  direction.open.pop_back();
  if (list.turn_ != MessageList::Turn::has) return;  // it stays in the queue, if it waits
  list.turn_ = MessageList::Turn::none;
  if (stream.tag == 0) return;
  --direction.turns;
  while (!direction.waiting.empty() && direction.turns < limits::kTalkingTagsMax) {
    MessageStream& next = *direction.waiting.front();
    direction.waiting.pop_front();
    next.list(send).turn_ = MessageList::Turn::none;
    if (!next.list(send).empty()) give_turn(next, send);
  }
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

void PeerMessages::rotate(const Listed& listed) {
  report_from_.receives += listed.receives;
  report_from_.sends += listed.sends;
  const auto note_listed = [](std::vector<GivenUp>& notices, std::size_t count) {
    const auto end = notices.begin() + static_cast<std::ptrdiff_t>(count);
    std::for_each(notices.begin(), end, [](GivenUp& one) { --one.reports; });
    std::rotate(notices.begin(), end, notices.end());
    std::erase_if(notices, [](const GivenUp& one) { return one.reports <= 0; });
  };
  note_listed(given_up_, listed.given_up);
  note_listed(refused_, listed.refused);
}

void PeerMessages::give_up(std::uint32_t tag, std::uint32_t number) {
  std::erase_if(given_up_,
                [&](const GivenUp& one) { return one.tag == tag && one.number == number; });
  if (given_up_.size() == limits::kGivenUpMax) {
    given_up_.erase(std::ranges::min_element(given_up_, {}, &GivenUp::reports));
  }
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
  // A message talks only after the one kWindow numbers before it has ended at the sender. So no
  // report need list refused messages that are so far behind this one.
  constexpr std::uint32_t kWindow = limits::kTalkingMessagesMax;
  std::erase_if(refused_, [&](const GivenUp& one) {
    return one.tag == round.plan->message_tag && !after(one.number + kWindow, round.number);
  });
  refused_.push_back({.tag = round.plan->message_tag,
                      .number = round.number,
                      .reports = limits::kRefusedReports,
                      .unmatched = round.plan->tag});
}

void PeerMessages::note_refusal_heard(std::uint32_t tag, std::uint32_t number) {
  std::erase_if(refused_,
                [&](const GivenUp& one) { return one.tag == tag && one.number == number; });
}

std::uint32_t PeerMessages::unlisted_below(std::uint32_t tag, std::size_t listed,
                                           std::uint32_t otherwise) const {
  std::uint32_t below = otherwise;
  for (std::size_t i = listed; i < refused_.size(); ++i) {
    if (refused_[i].tag == tag && after(below, refused_[i].number)) below = refused_[i].number;
  }
  return below;
}

void PeerMessages::remember(std::span<const wire::OpenedStream> said) {
  said_count_ = said.size();
  std::copy(said.begin(), said.end(), said_.begin());
}

}  // namespace leeway::protocol
