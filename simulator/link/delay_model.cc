#include "link/delay_model.h"

#include <algorithm>
#include <cinttypes>

#include "link/parameter_check.h"

namespace leeway::sim {
namespace {

bool has_values(DelayShape shape) {
  return shape == DelayShape::table || shape == DelayShape::trace;
}

const QuantileTable* quantiles_of(DelayShape shape) {
  switch (shape) {
    case DelayShape::normal:
      return &normal_quantiles();
    case DelayShape::pareto:
      return &pareto_quantiles();
    case DelayShape::paretonormal:
      return &paretonormal_quantiles();
    default:
      return nullptr;
  }
}

Status check_values(const DelayOptions& options) {
  const std::size_t count = options.values_ns.size();
  const std::size_t least =
      !has_values(options.shape) ? 0 : 1 + (options.shape == DelayShape::table);
  const std::size_t most = has_values(options.shape) ? kDelayValuesMax : 0;
  if (count < least || count > most) {
    return Status::error(StatusCode::kInvalidArgument,
                         "delay.values_ns has %zu values: expected %zu to %zu", count, least, most);
  }
  std::int64_t from = 0;
  for (const std::int64_t value : options.values_ns) {
    if (Status status = check_range("delay.values_ns", value, from, kDelayMaxNs); !status.ok()) {
      return status;
    }
    if (options.shape == DelayShape::table) from = value;
  }
  return {};
}

}  // namespace

Status check_delay(const DelayOptions& options) {
  const std::int64_t jitter_max = has_values(options.shape) ? 0 : kDelayMaxNs;
  const Status times = both(check_range("delay.delay_ns", options.delay_ns, 0, kDelayMaxNs),
                            check_range("delay.jitter_ns", options.jitter_ns, 0, jitter_max));
  return both(both(times, check_probability("delay.correlation", options.correlation)),
              check_values(options));
}

Result<DelayModel> DelayModel::make(const DelayOptions& options, std::uint64_t seed,
                                    std::uint64_t link) {
  if (Status status = check_delay(options); !status.ok()) return status;
  return DelayModel(options, RandomStream(seed, link, Purpose::delay));
}

DelayModel::DelayModel(const DelayOptions& options, const RandomStream& random)
    : shape_(options.shape),
      keep_order_(options.keep_order),
      delay_ns_(options.delay_ns),
      jitter_ns_(options.jitter_ns),
      quantiles_(quantiles_of(options.shape)),
      values_ns_(options.values_ns),
      draws_(random, options.correlation) {}

std::int64_t DelayModel::next_delay() {
  return std::max<std::int64_t>(0, delay_ns_ + variation());
}

std::int64_t DelayModel::variation() {
  if (has_values(shape_)) return from_values();
  return jitter_ns_ > 0 ? from_shape() : 0;
}

// Returns jitter times the shape's random value, rounded to the nearest ns. The product fits 63
// bits: jitter is below 2^40 ns, and a quantile, at most 4, is stored times 2^20.
std::int64_t DelayModel::from_shape() {
  const std::uint32_t u = draws_.next();
  if (quantiles_ == nullptr) {
    const auto width = static_cast<std::uint64_t>(2 * jitter_ns_);
    return static_cast<std::int64_t>(Wide{width} * u >> 32) - jitter_ns_;
  }
  constexpr std::int64_t kHalf = std::int64_t{1} << (QuantileTable::kUnitBits - 1);
  return (jitter_ns_ * quantiles_->at(u) + kHalf) >> QuantileTable::kUnitBits;
}

std::int64_t DelayModel::from_values() {
  if (shape_ == DelayShape::trace) {
    const std::int64_t value = values_ns_[next_value_];
    if (++next_value_ == values_ns_.size()) next_value_ = 0;
    return value;
  }
  const std::uint64_t place = std::uint64_t{draws_.next()} * (values_ns_.size() - 1);
  const std::size_t i = place >> 32;
  // place between the entries i and i + 1, in units of 2^-20
  const auto rest = static_cast<std::int64_t>((place & UINT32_MAX) >> 12);
  return values_ns_[i] + ((values_ns_[i + 1] - values_ns_[i]) * rest >> 20);
}

}  // namespace leeway::sim
