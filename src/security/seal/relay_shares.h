// Keeps the rate at which each relay forwards this process's datagrams (WIRE 9.10).
//
// A relay's message can only slow down traffic through that relay, which the relay could drop
// anyway. A rate below kLeast is taken as kLeast, so that challenges through other relays still
// pass.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "leeway/types.h"
#include "seal/path_message.h"

namespace leeway::seal {

class RelayShares {
 public:
  // Least rate that a relay can set, bytes per second.
  static constexpr std::uint64_t kLeast = 16'000;

  // What one relay did for this process.
  struct Share {
    std::uint64_t sent = 0;              // datagrams sent through it
    std::uint64_t refused = 0;           // datagrams that it said it refused
    std::uint64_t bytes_per_second = 0;  // 0 if it has refused none
  };
  struct Change {
    Rank relay = kNoRank;
    std::uint64_t bytes_per_second = 0;
  };

  // Counts datagrams that leave through the relay.
  void on_sent(Rank relay, std::uint64_t datagrams);
  // Takes in a relay's message. A message that claims more refusals than datagrams were sent
  // through the relay, or fewer than an earlier message, is refused and counted.
  void on_message(Rank relay, const ShareMessage& message);

  // Returns the next changed rate of a relay; nullopt if none is left.
  std::optional<Change> poll();

  // Shares by slot; those of peers that never relayed are empty.
  const std::vector<Share>& shares() const { return shares_; }
  std::uint64_t refused() const;  // number of refused datagrams, over all relays
  std::uint64_t words_refused() const { return words_refused_; }

 private:
  std::vector<Share> shares_;
  std::vector<Change> changes_;
  std::uint64_t words_refused_ = 0;
};

}  // namespace leeway::seal
