// I16: a message arrives as it was sent. A receive holds, bit for bit, what a send of its tag to
// its rank was given, and as much. Of one pair of ranks and tag, later receives hold later sends.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
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
  struct Stream {
    std::uint32_t sends = 0;
    std::int64_t latest = -1;                          // that was received
    std::map<std::uint32_t, std::vector<float>> sent;  // by number; until received
  };
  using Key = std::tuple<Rank, Rank, std::uint32_t>;  // from, to, tag
  void check_receive(Instant now, Rank rank, const Call& call, const collective::Request& message);

  Check& check_;
  std::map<Key, Stream> streams_;
};

}  // namespace leeway::sim
