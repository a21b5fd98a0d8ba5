// Records which rank has finished which round, and the figures of each round.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "endpoint/endpoints.h"
#include "run/round_values.h"
#include "run/run_record.h"

namespace leeway::sim {

// Limit on the number of call times that are kept. When it is reached, only every second time is
// kept, later every fourth, and so on.
inline constexpr std::size_t kCallsKept = std::size_t{1} << 16;

struct OpenRound {
  RoundRecord record;
  RoundValues values;
  std::vector<std::int64_t> call_ns;  // times of ranks that have finished
  std::vector<bool> finished;         // by rank
  std::vector<bool> failed;           // by rank: one of its calls returned an error
  double contributors = 0;            // sum over calls with a reduce half
  std::uint32_t reductions = 0;
};

class RoundBook {
 public:
  explicit RoundBook(std::uint32_t ranks);

  // Returns the open round, which is made on first use.
  OpenRound& round(std::uint32_t number);

  void on_begin(Instant now, std::uint32_t round);
  void on_submit(Instant now, std::uint32_t rank,
                 std::uint32_t round);  // time of the round's first call
  void on_call(std::uint32_t rank, std::uint32_t round, const CallResult& result);
  void on_failed(std::uint32_t rank, std::uint32_t round);  // a call, or what follows it
  void on_finish(Instant now, std::uint32_t rank, std::uint32_t round);
  void on_death(std::uint32_t rank);

  // Returns true if every live rank has finished the lowest open round, and sets `round` to that
  // round. Later rounds cannot be complete before it.
  bool complete(std::uint32_t& round) const;
  // Closes the round and moves it to the records.
  RoundRecord& close(std::uint32_t round);

  const std::vector<RoundRecord>& records() const { return records_; }
  // Returns the times that ranks spent in calls in rounds without a failed call.
  const std::vector<double>& call_ms() const { return call_ms_; }
  std::uint32_t live_ranks() const;
  // By rank, for the fairness index: simulated time in calls, and finished rounds without a failed
  // call.
  const std::vector<std::int64_t>& busy_ns() const { return busy_ns_; }
  const std::vector<std::uint32_t>& rounds_done() const { return rounds_done_; }

 private:
  void keep_call(double ms);

  std::map<std::uint32_t, OpenRound> open_;
  std::vector<bool> dead_;
  std::vector<std::int64_t> submitted_ns_;  // by rank, of its open round
  std::vector<std::int64_t> busy_ns_;
  std::vector<std::uint32_t> rounds_done_;
  std::vector<RoundRecord> records_;
  std::vector<double> call_ms_;
  std::uint64_t calls_ = 0;
  std::uint64_t calls_every_ = 1;
};

}  // namespace leeway::sim
