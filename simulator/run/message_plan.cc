#include "run/message_plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "engine/random_stream.h"
#include "leeway/message.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

// On average one message in kEmptyEvery has no elements.
constexpr std::uint32_t kEmptyEvery = 16;

// In an exchange a rank sends at most this many messages to itself.
constexpr std::uint32_t kOwnMax = 3;

// In a round, kTries * ranks * (limit on a rank's messages) pairs of ranks are drawn. A pair is
// skipped if one of its ranks has reached the limit.
constexpr std::uint32_t kTries = 2;

std::uint64_t entity_of(std::uint32_t round, std::uint32_t part) {
  return std::uint64_t{round} << 32 | part;
}

// Returns a value that depends on message and element, and that float32 holds exactly.
float value_of(std::uint32_t round, std::uint32_t message, std::uint32_t element) {
  return static_cast<float>((round * 40503u + message * 9973u + element * 31u) & 0xFFFFFFu);
}

OperationSpec exchange_of(const std::vector<OperationSpec>& messages,
                          const CollectiveOptions& options) {
  std::vector<Message> all;
  all.reserve(messages.size());
  for (const OperationSpec& one : messages) {
    all.push_back(one.kind == OperationKind::send
                      ? Message::send(one.input, one.peer, one.options.tag)
                      : Message::recv(one.output, one.peer, one.options.tag));
  }
  OperationSpec spec;
  spec.kind = OperationKind::exchange;
  spec.options = options;
  spec.messages = std::make_shared<const std::vector<Message>>(std::move(all));
  return spec;
}

}  // namespace

MessagePlan::MessagePlan(const scenario::Scenario& scenario, std::uint64_t seed,
                         const CollectiveOptions& options)
    : seed_(seed),
      ranks_(scenario.ranks()),
      each_max_(scenario.operation().kind() == scenario::Operation::messages
                    ? scenario.operation().messages_max()
                    : scenario.operation().messages_first()),
      elements_max_(static_cast<std::uint32_t>(scenario.operation().bytes() / sizeof(float))),
      tags_(scenario.operation().tags()),
      any_source_(scenario.operation().any_source()),
      exchanges_(scenario.operation().exchange()),
      options_(options) {}

std::vector<MessagePlan::Message> MessagePlan::messages_of(std::uint32_t round) const {
  std::vector<Message> messages;
  if (ranks_ < 2) return messages;
  RandomStream random(seed_, entity_of(round, 0), Purpose::message);
  RandomStream tags(seed_, entity_of(round, 1 + ranks_), Purpose::message);
  std::vector<std::uint32_t> each(ranks_, 0);
  for (std::uint32_t tries = kTries * ranks_ * each_max_; tries > 0; --tries) {
    const auto from = static_cast<std::uint32_t>(random.below(ranks_));
    const auto to =
        static_cast<std::uint32_t>((from + 1 + random.below(ranks_ - 1)) % std::uint64_t{ranks_});
    const bool empty = random.below(kEmptyEvery) == 0;
    const auto elements = static_cast<std::uint32_t>(1 + random.below(elements_max_));
    if (each[from] == each_max_ || each[to] == each_max_) continue;
    ++each[from];
    ++each[to];
    messages.push_back({.from = static_cast<Rank>(from),
                        .to = static_cast<Rank>(to),
                        .elements = empty ? 0 : elements,
                        .tag = static_cast<std::uint32_t>(tags.below(tags_))});
  }
  if (exchanges_) add_own(round, messages);
  return messages;
}

void MessagePlan::add_own(std::uint32_t round, std::vector<Message>& messages) const {
  RandomStream random(seed_, entity_of(round, 2 + ranks_), Purpose::message);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    for (auto left = random.below(kOwnMax + 1); left > 0; --left) {
      const auto self = static_cast<Rank>(rank);
      messages.push_back({.from = self,
                          .to = self,
                          .elements = static_cast<std::uint32_t>(random.below(elements_max_ + 1)),
                          .tag = static_cast<std::uint32_t>(random.below(tags_))});
    }
  }
}

// Returns true if the receive of this message accepts any sender. All receives of one rank with one
// tag are alike in this. Otherwise a receive from any sender could take a message that was meant
// for a receive that names its sender. A rank names itself in receives of its own messages.
bool MessagePlan::from_any(const Message& message) const {
  return any_source_ && message.from != message.to && (message.to + message.tag) % 2 == 0;
}

// Returns the message's tag. If its receive accepts any sender, the tag serves one round only. If
// later rounds used the tag, too, the receive could take a message of a later round from a rank
// that is ahead. This round's message would then wait for the later round's receive, and two ranks
// could wait for each other for ever.
std::uint32_t MessagePlan::tag_of(const Message& message, std::uint32_t round) const {
  return from_any(message) ? message.tag + round * tags_ : message.tag;
}

// Returns the rank's messages in an order of the rank's own. Messages of one pair and tag keep the
// order of their numbers, so that both sides match them alike.
std::vector<MessagePlan::End> MessagePlan::order_of(std::uint32_t rank, std::uint32_t round,
                                                    const std::vector<Message>& messages) const {
  std::vector<End> order;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    if (messages[i].from == rank) order.push_back({i, true});
    if (messages[i].to == rank) order.push_back({i, false});
  }
  RandomStream random(seed_, entity_of(round, 1 + rank), Purpose::message);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  // If there are more tags than may have a turn at once, even and odd ranks post them in opposite
  // orders. So the tags that have a turn at one rank have none at the other.
  if (tags_ > limits::kTalkingTagsMax)
    std::ranges::sort(order, [rank](const End& a, const End& b) {
      return rank % 2 == 0 ? a.message < b.message : a.message > b.message;
    });
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const Message& a = messages[order[i].message];
      const Message& b = messages[order[j].message];
      const bool same = a.from == b.from && a.to == b.to && a.tag == b.tag;
      if (same && order[i].sends == order[j].sends && order[i].message > order[j].message)
        std::swap(order[i], order[j]);
    }
  }
  return order;
}

void MessagePlan::prepare(std::uint32_t rank, std::uint32_t round, RankMemory& memory) const {
  const std::vector<Message> messages = messages_of(round);
  const std::vector<End> order = order_of(rank, round, messages);
  memory.message_buffers.resize(order.size());
  memory.messages.assign(order.size(), OperationSpec());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [number, sends] = order[i];
    const Message& message = messages[number];
    std::vector<float>& buffer = memory.message_buffers[i];
    const std::uint32_t spare = tags_ > 1 ? message.elements % 37 : 0;
    const std::uint32_t room = from_any(message) ? elements_max_ : message.elements + spare;
    buffer.assign(sends ? message.elements : room, 0.0f);
    for (std::uint32_t k = 0; sends && k < message.elements; ++k)
      buffer[k] = value_of(round, number, k);
    OperationSpec& spec = memory.messages[i];
    spec.kind = sends ? OperationKind::send : OperationKind::recv;
    spec.peer = sends ? message.to : from_any(message) ? kAnyRank : message.from;
    spec.options = options_;
    spec.options.tag = tag_of(message, round);
    if (sends)
      spec.input = std::span<const float>(buffer);
    else
      spec.output = std::span<float>(buffer);
  }
  if (exchanges_) memory.exchange = exchange_of(memory.messages, options_);
}

}  // namespace leeway::sim
