// I16: a message arrives as it was sent. The n-th receive of a pair of ranks holds, bit for bit,
// what the n-th send of that pair was given.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "checker/check.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class MessageCheck {
 public:
  explicit MessageCheck(Check& check) : check_(check) {}

  void on_submit(Rank rank, const Call& call);
  void on_done(Instant now, Rank rank, const Call& call, const CallResult& result);

 private:
  using Pair = std::pair<Rank, Rank>;  // from, to
  struct Stream {
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
    std::map<std::uint32_t, std::vector<float>> sent;  // by number; until received
  };
  void check_receive(Instant now, Rank rank, std::uint32_t number, const Call& call,
                     const collective::Request& message);

  Check& check_;
  std::map<Pair, Stream> streams_;
  std::map<Rank, std::vector<std::uint32_t>> numbers_;  // of the messages of a rank's open call
};

}  // namespace leeway::sim
