// Which messages the ranks send each other in a round: pairs, sizes and each rank's order of
// posting, drawn from the run's seed. Messages of an exchange may be for the rank itself.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/options.h"
#include "run/rank_memory.h"
#include "scenario.pb.h"

namespace leeway::sim {

class MessagePlan {
 public:
  // Plans a round of kind messages, or the messages that come first in a round of another kind. The
  // options' delivery, deadline and codec are used. The scenario is valid.
  MessagePlan(const scenario::Scenario& scenario, std::uint64_t seed,
              const CollectiveOptions& options);

  // Returns true if a rank's messages of a round are one operation.
  bool exchanges() const { return exchanges_; }
  // Fills memory.messages with the rank's sends and receives of this round in the order in which it
  // posts them, memory.message_buffers with what they read and write, and memory.exchange with the
  // operation that they make, if any.
  void prepare(std::uint32_t rank, std::uint32_t round, RankMemory& memory) const;

 private:
  struct Message {
    Rank from = 0;
    Rank to = 0;
    std::uint32_t elements = 0;
    std::uint32_t tag = 0;
  };
  // One end of a message.
  struct End {
    std::uint32_t message = 0;  // index of the message in the round
    bool sends = false;
  };
  void add_own(std::uint32_t round, std::vector<Message>& messages) const;
  bool from_any(const Message& message) const;
  std::uint32_t tag_of(const Message& message, std::uint32_t round) const;
  std::vector<Message> messages_of(std::uint32_t round) const;
  std::vector<End> order_of(std::uint32_t rank, std::uint32_t round,
                            const std::vector<Message>& messages) const;

  std::uint64_t seed_;
  std::uint32_t ranks_;
  std::uint32_t each_max_;
  std::uint32_t elements_max_;
  std::uint32_t tags_;
  bool any_source_;
  bool exchanges_;
  CollectiveOptions options_;
};

}  // namespace leeway::sim
