// I6: all ranks that hold a packet of a result, its owner included, hold the same bits.
//
// The first rank that returns with a packet sets the value, and later ranks are compared with it.
// In all_to_all, gather and scatter, every block is compared with its sender's data. Parameters
// that a broadcast did not bring must be unchanged, and at most age_max broadcasts old.
#pragma once

#include <span>
#include <vector>

#include "checker/check.h"
#include "checker/ledger_book.h"
#include "leeway/report.h"

namespace leeway::sim {

class Agreement {
 public:
  // `age_max`: maximum number of broadcasts in a row that a rank's copy of parameters may miss; 0
  // sets no maximum.
  Agreement(Check& check, int size, std::uint64_t seed, std::uint32_t age_max);

  // Call it before the engine sees a replica_broadcast. `result`: the parameters of other owners
  // that the rank holds.
  void on_submit(Rank rank, const CallLedger& call, std::span<const float> result);

  void on_done(Instant now, Rank rank, CallLedger& call, const CollectiveReport& report,
               std::span<const float> result);
  // Call it when a call of this rank failed. The rank's copies of others' parameters are then
  // undefined.
  void forget(Rank rank) { held_[rank].clear(); }

 private:
  // State of a rank's copy of one packet of another rank's parameters.
  struct Held {
    std::uint32_t digest = 0;
    std::uint32_t age = 0;  // broadcasts since the block came
  };
  void compare_owner(Instant now, Rank rank, Rank owner, CallLedger& call,
                     std::span<const float> result);
  void compare_packet(Instant now, Rank rank, Rank owner, CallLedger& call, std::uint32_t index,
                      std::span<const float> result);
  void compare_with_source(Instant now, Rank rank, Rank from, const CallLedger& call,
                           std::span<const float> result);
  // brought_by() returns a packet as its sender had it, sent_by() as its receivers decode it.
  std::span<const float> brought_by(Rank from, Rank to, const CallLedger& call,
                                    std::uint32_t index) const;
  std::span<const float> sent_by(Rank from, Rank to, const CallLedger& call, std::uint32_t index);
  void compare_cleared(Instant now, Rank rank, Rank owner, const CallLedger& call,
                       std::span<const float> result);
  void compare_ages(Instant now, Rank rank, const CallLedger& call, const CollectiveReport& report,
                    std::span<const float> result);

  Check& check_;
  int size_;
  std::uint64_t seed_;
  std::uint32_t age_max_;
  std::vector<std::vector<std::vector<Held>>> held_;  // [rank][owner][block]
  std::vector<float> decoded_;
  std::vector<std::byte> encoded_;
};

}  // namespace leeway::sim
