// Draws from the run's seed which messages ranks send each other in a round: pairs, sizes and each
// rank's order of posting. In an exchange a rank may also send to itself.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/options.h"
#include "run/rank_memory.h"
#include "scenario.pb.h"

namespace leeway::sim {

class MessagePlan {
 public:
  // Plans the rounds of a scenario of kind `messages`. For another kind, plans the messages before
  // each round's call. Uses delivery, deadline and codec of `options`. The scenario must be valid.
  MessagePlan(const scenario::Scenario& scenario, std::uint64_t seed,
              const CollectiveOptions& options);

  // Returns true if all messages of a rank in a round are one operation (an exchange).
  bool exchanges() const { return exchanges_; }
  // Sets three members of `memory` for this round. `messages` gets the rank's sends and receives in
  // the order of posting, and `message_buffers` their buffers. `exchange` gets the operation that
  // they form, if exchanges().
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
