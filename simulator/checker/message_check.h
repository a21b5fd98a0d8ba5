// I16: a message arrives as it was sent. A receive holds, bit for bit and in full, what a send with
// its tag sent to its rank. For one pair of ranks and one tag, later receives hold later sends.
//
// An exchange is done when all of its messages are. It succeeds if and only if all of them do, and
// its report lists their reports in the caller's order. A rank's messages to itself are checked
// too: the n-th receive of a tag must hold its n-th send.
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
    std::int64_t latest = -1;  // number of the latest send that was received
    std::map<std::uint32_t, std::vector<float>> sent;  // by number; until received
  };
  using Key = std::tuple<Rank, Rank, std::uint32_t>;  // from, to, tag
  void check_receive(Instant now, Rank rank, const Call& call, const collective::Request& message);
  void check_exchange(Instant now, Rank rank, const Call& call, const CallResult& result);
  void check_own(Instant now, Rank rank, const Call& call);

  Check& check_;
  std::map<Key, Stream> streams_;
};

}  // namespace leeway::sim
