// Proof that UCX wakes a sleeping rank, between every pair of ranks and in both directions.
//
// UCX moves data by one mechanism (shared memory, say) and wakes a sleeping receiver by another (a
// socket). The second can be missing where the first works: ranks that share memory but no network
// namespace reach each other only while they are awake. A test that merely exchanges datagrams does
// not notice, and the first call that sleeps hangs.
//
// All ranks run the proof at the same time, before anything else uses the transport. Every rank
// meets every other once, in size - 1 rounds of disjoint pairs. In each meeting both ranks take
// turns to sleep:
//
//   sleeper: ASK -----------> waker      "answer me in 200 us"
//   sleeper: arms UCX's descriptor, sleeps on it alone
//   waker:   ANSWER --------> sleeper    after that time
//   sleeper: DONE ----------> waker
//
// The verdict does not depend on timing. An answer that came before the sleep, or together with
// another rank's message, proves nothing: the sleeper asks again for twice the time. An answer that
// lies there while the descriptor stays silent is a failure. Failures are passed on in every later
// message, so the rest of the rounds takes no more sleep, and all ranks end with the same verdict.
#pragma once

#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/time.h"
#include "leeway/status.h"
#include "transport/ucx/ucx_transport.h"

namespace leeway::transport {

class UcxWakeProof {
 public:
  // `transport` has been told its peers and has sent nothing yet.
  UcxWakeProof(UcxTransport& transport, Rank self, int size);

  // kUnavailable, naming two ranks, if one is not woken by the other; also if the ranks have not
  // finished after `timeout`. A few milliseconds for a few ranks, about half a millisecond more for
  // each further rank.
  Status run(Duration timeout);
  // As run(), for a caller who may take his call back: it fails soon then.
  Status run(Duration timeout, std::stop_token stop) {
    stop_ = std::move(stop);
    return run(timeout);
  }

 private:
  enum class Kind : std::uint32_t { hello = 1, ask, answer, done, verdict };
  struct Message {
    std::uint32_t mark;
    Kind kind;
    std::uint32_t attempt;   // number of the attempt, in ask and answer
    std::uint32_t delay_us;  // delay of the answer, in ask
    std::uint32_t sleeper;   // sleeping rank of the failure that the sender knows of, or kNoRank
    std::uint32_t waker;
  };
  struct Heard {  // news from one rank that has not been used yet
    bool hello = false;
    bool verdict = false;
    bool done = false;
    std::uint32_t asked = 0;  // number of the attempt that the peer asks for, or 0
    std::uint32_t delay_us = 0;
    std::uint32_t answered = 0;  // number of the attempt that the peer answered
  };
  enum class Outcome { proven, unclear, failed, out_of_time };

  bool greet();
  bool meet(Rank peer);
  bool sleep_until_woken_by(Rank waker);
  Outcome sleep_once(Rank waker, std::uint32_t attempt);
  bool wake(Rank sleeper);
  bool exchange_verdicts();

  bool tell(Rank peer, Kind kind, std::uint32_t attempt = 0, Duration delay = Duration(0));
  bool tell_all(Kind kind);
  // Takes in what is there; returns how many messages of other ranks than `peer` were among it.
  std::size_t take_in(Rank peer);
  void take(const Received& datagram);
  template <typename Condition>
  bool await(Condition condition);
  bool out_of_time() const;
  bool failed() const { return sleeper_ != kNoRank; }

  UcxTransport& transport_;
  const Rank self_;
  const Rank size_;
  Instant deadline_;
  std::stop_token stop_;
  std::vector<Heard> heard_;  // by rank
  Rank sleeper_ = kNoRank;    // the first failure that this rank knows of
  Rank waker_ = kNoRank;
};

}  // namespace leeway::transport
