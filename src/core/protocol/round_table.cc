#include "protocol/round_table.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::protocol {

RoundTable::RoundTable(int size) : size_(size), messages_(size) {}

std::uint32_t RoundTable::take_number(const RoundPlan& plan) {
  if (!plan.point_to_point()) {
    const std::uint32_t number = plan.number.value_or(opened_below_);
    LEEWAY_ASSERT(!after(opened_below_, number));
    opened_below_ = number + 1;
    ++collectives_opened_;
    return number;
  }
  PeerMessages& messages = make_messages(plan.point_peer);
  messages.deadline_at = std::min(messages.deadline_at, plan.deadline);
  MessageStream& stream = messages.stream(plan.message_tag);
  return plan.point_send ? stream.sends_opened++ : stream.receives_opened++;
}

PeerMessages& RoundTable::make_messages(Rank peer) {
  auto& messages = messages_[peer];
  if (messages == nullptr) messages = std::make_unique<PeerMessages>(starting_);
  return *messages;
}

Round* RoundTable::open(const RoundPlan& plan, RoundClient& client, Instant now) {
  const bool point = plan.point_to_point();
  if (!point && open_count_ == open_.size()) return nullptr;
  std::vector<Round*>& free = point ? free_messages_ : free_collectives_;
  if (free.empty()) {
    free.push_back(rounds_.emplace_back(std::make_unique<Round>()).get());
    if (!point) {
      free.back()->slot = slot_count_;
      slots_[slot_count_++] = free.back();
    }
    ended_.reserve(rounds_.size());
    starting_.reserve(rounds_.size());
    free_messages_.reserve(rounds_.size());
    free_collectives_.reserve(rounds_.size());
  }
  Round& round = *free.back();
  free.pop_back();
  round.reset(take_number(plan), plan, &client, size_, now);
  round.opening = openings_++;
  if (point) {
    round.stream = stream(plan.point_peer, plan.message_tag);
    const bool wanted = plan.point_send && after(round.stream->peer_opened_below, round.number);
    messages_[plan.point_peer]->push(round, wanted);
    ++message_count_;
  } else {
    open_[open_count_++] = &round;
  }
  return &round;
}

Round* RoundTable::find(FlowKind kind, std::uint32_t number, std::uint32_t message_tag, Rank peer,
                        bool as_sender) const {
  Round* found = nullptr;
  if (kind == FlowKind::point) {
    const MessageStream* const of_tag = stream(peer, message_tag);
    if (of_tag == nullptr) return nullptr;
    found = (as_sender ? of_tag->sends : of_tag->receives).find(number);
  } else {
    for (Round* round : collectives()) {
      if (round->number != number) continue;
      if (round->plan->phase(kind).active) found = round;
      break;
    }
  }
  return found != nullptr && !found->ended ? found : nullptr;
}

Round* RoundTable::in_slot(std::size_t slot) const {
  Round* const round = slots_[slot];
  return round != nullptr && round->client != nullptr && !round->ended ? round : nullptr;
}

void RoundTable::end(Round& round) {
  LEEWAY_ASSERT(!round.ended);
  round.ended = true;
  ended_.push_back(&round);
  const bool gave_up =
      !round.plan->point_to_point() && (round.plan->stands_in || !round.all_confirmed());
  if (gave_up && !after(gave_up_below_, round.number)) gave_up_below_ = round.number + 1;
  refresh_settled_below();
}

RoundClient* RoundTable::take_ended() {
  LEEWAY_ASSERT(any_ended());
  Round& round = *ended_[ended_taken_++];
  if (!any_ended()) {
    ended_.clear();
    ended_taken_ = 0;
  }
  RoundClient* const client = std::exchange(round.client, nullptr);
  if (!round.plan->point_to_point()) {
    const auto end = open_.begin() + static_cast<std::ptrdiff_t>(open_count_);
    const auto at = std::find(open_.begin(), end, &round);
    std::copy(at + 1, end, at);
    --open_count_;
    free_collectives_.push_back(&round);
    return client;
  }
  messages_[round.plan->point_peer]->erase(round);
  --message_count_;
  free_messages_.push_back(&round);
  return client;
}

Round* RoundTable::take_starting() {
  if (starting_.empty()) return nullptr;
  Round* const taken = starting_.back();
  starting_.pop_back();
  return taken;
}

void RoundTable::refresh_settled_below() {
  std::uint32_t below = opened_below_;
  for (const Round* round : collectives()) {
    if (!round->ended && !round->all_settled() && after(below, round->number))
      below = round->number;
  }
  for (std::size_t i = 0; i < std::min(held_count_, held_.size()); ++i) {
    const std::uint32_t ago = opened_below_ - held_[i];
    if (ago <= limits::kOpenCollectivesMax && after(below, held_[i])) below = held_[i];
  }
  if (after(below, settled_below_)) settled_below_ = below;
}

}  // namespace leeway::protocol
