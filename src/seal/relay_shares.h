// What relays let pass of what this process sends through them (WIRE 9.10).
//
// A relay's word can only slow down what goes through it, which it could also drop. It never counts
// below kLeast, so that questions for another relay pass.
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
  // Bytes a second.
  static constexpr std::uint64_t kLeast = 16'000;

  // What one relay did with this process' datagrams.
  struct Share {
    std::uint64_t sent = 0;              // datagrams through it
    std::uint64_t refused = 0;           // of these, as it said
    std::uint64_t bytes_per_second = 0;  // 0: it has refused none
  };
  struct Change {
    Rank relay = kNoRank;
    std::uint64_t bytes_per_second = 0;
  };

  // So many datagrams leave through the relay.
  void on_sent(Rank relay, std::uint64_t datagrams);
  // The relay's word. One that claims more refusals than datagrams were sent through it, or fewer
  // than it said before, is refused and counted.
  void on_message(Rank relay, const ShareMessage& message);

  // What may go through a relay from now on; nullopt: no more changes.
  std::optional<Change> poll();

  // By slot; those of peers that never relayed are empty.
  const std::vector<Share>& shares() const { return shares_; }
  std::uint64_t refused() const;  // datagrams, by all relays
  std::uint64_t words_refused() const { return words_refused_; }

 private:
  std::vector<Share> shares_;
  std::vector<Change> changes_;
  std::uint64_t words_refused_ = 0;
};

}  // namespace leeway::seal
