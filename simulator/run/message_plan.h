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
  // Plans rounds of kind messages, or the messages before the call in rounds of another kind. Of
  // `options` it uses delivery, deadline and codec. The scenario must be valid.
  MessagePlan(const scenario::Scenario& scenario, std::uint64_t seed,
              const CollectiveOptions& options);

  // Returns true if a rank's messages of a round are one operation.
  bool exchanges() const { return exchanges_; }
  // Fills `memory` for this round. `messages`: the rank's sends and receives in the order of
  // posting. `message_buffers`: their buffers. `exchange`: the operation that they form, if any.
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
