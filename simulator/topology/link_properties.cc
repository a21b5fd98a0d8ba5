#include "topology/link_properties.h"

#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

std::int64_t typical_value(const DelayOptions& delay) {
  const std::vector<std::int64_t>& values = delay.values_ns;
  if (delay.shape == DelayShape::table) {
    const std::size_t last = values.size() - 1;
    return (values[last / 2] + values[(last + 1) / 2]) / 2;
  }
  if (delay.shape != DelayShape::trace) return 0;
  std::int64_t sum = 0;  // 2^20 values of up to 2^40
  for (const std::int64_t value : values) sum += value;
  return sum / static_cast<std::int64_t>(values.size());
}

}  // namespace

std::int64_t typical_delay_ns(const LinkProperties& properties) {
  std::int64_t sum = 0;
  for (const DelayOptions& delay : properties.delays) sum += delay.delay_ns + typical_value(delay);
  return sum;
}

std::uint64_t line_rate_bps(const LinkProperties& properties) {
  const QueueOptions& queue = properties.queue;
  if (!properties.limited) return 0;
  if (queue.deliveries_ns.empty()) return queue.bits_per_second;
  const Wide bits = Wide{queue.delivery_bytes} * 8 * queue.deliveries_ns.size();
  return static_cast<std::uint64_t>(bits * 1'000'000'000 /
                                    static_cast<std::uint64_t>(queue.deliveries_ns.back()));
}

}  // namespace leeway::sim
