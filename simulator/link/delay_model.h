// How long a link delays each packet, without queueing. Call arrival() once per packet, in the
// order of sending. Results depend only on the options, the seed and the link. Times are integer
// ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/status.h"
#include "link/correlated_uniform.h"
#include "link/quantile_table.h"

namespace leeway::sim {

enum class DelayShape : std::uint8_t {
  uniform,  // delay - jitter .. delay + jitter
  normal,   // deviation = jitter; this and the next two have netem's shapes, quantile_table.h
  pareto,
  paretonormal,
  table,  // delay + a value drawn from the distribution with the quantiles `values_ns`
  trace,  // delay + `values_ns`, one after the other, from the front again after the last
};

// netem `delay TIME JITTER CORRELATION distribution SHAPE`. As in netem, a negative delay counts as
// 0, so a jitter larger than the delay moves the mean.
struct DelayOptions {
  DelayShape shape = DelayShape::uniform;
  std::int64_t delay_ns = 0;   // 0 to kDelayMaxNs
  std::int64_t jitter_ns = 0;  // 0 to kDelayMaxNs; 0 for table and trace
  // correlation between the random numbers of consecutive packets; as in netem, it makes the
  // distribution narrower
  double correlation = 0;
  std::vector<std::int64_t> values_ns;  // table: 2 or more, rising, at equal steps of probability
                                        // from the least to the greatest; trace: 1 or more
  bool keep_order = false;              // a packet waits for the one sent before it
};

inline constexpr std::int64_t kDelayMaxNs = 600'000'000'000;  // keeps every product in 64 bits
inline constexpr std::size_t kDelayValuesMax = std::size_t{1} << 20;  // for the same reason

// The error names the parameter that is out of range, its value and its range.
Status check_delay(const DelayOptions& options);

class DelayModel {
 public:
  static Result<DelayModel> make(const DelayOptions& options, std::uint64_t seed,
                                 std::uint64_t link);

  // Returns when a packet that is sent now arrives. With keep_order, this is never before the
  // previous packet's arrival.
  std::int64_t arrival(std::int64_t now_ns) {
    std::int64_t at = now_ns + next_delay();
    if (keep_order_ && at < last_arrival_ns_) at = last_arrival_ns_;
    last_arrival_ns_ = at;
    return at;
  }

 private:
  DelayModel(const DelayOptions& options, const RandomStream& random);

  std::int64_t next_delay();
  std::int64_t variation();
  std::int64_t from_shape();
  std::int64_t from_values();

  DelayShape shape_;
  bool keep_order_;
  std::int64_t delay_ns_;
  std::int64_t jitter_ns_;
  const QuantileTable* quantiles_ = nullptr;  // table of the shape, if the shape has one
  std::vector<std::int64_t> values_ns_;
  std::size_t next_value_ = 0;
  std::int64_t last_arrival_ns_ = INT64_MIN;
  CorrelatedUniform draws_;
};

}  // namespace leeway::sim
