#include "link/queue_options.h"

#include <cinttypes>

#include "link/codel.h"
#include "link/parameter_check.h"
#include "link/serializer.h"

namespace leeway::sim {
namespace {

constexpr std::int64_t kDeliveryMaxNs = 86'400'000'000'000;  // a day
constexpr double kLongestQueueSeconds = 86'400;

Status check_room(const QueueOptions& options) {
  return both(both(check_count("queue.max_bytes", options.max_bytes, 1, kQueueBytesMax),
                   check_count("queue.max_packets", options.max_packets, 1, kQueuePacketsMax)),
              check_count("queue.trim_room_bytes", options.trim_room_bytes, 0, kQueueBytesMax));
}

// Returns the rate in bytes per second, for a recorded line the mean rate.
double bytes_per_second(const QueueOptions& options) {
  if (options.deliveries_ns.empty()) return static_cast<double>(options.bits_per_second) / 8;
  const double bytes = options.delivery_bytes * static_cast<double>(options.deliveries_ns.size());
  return bytes / static_cast<double>(options.deliveries_ns.back()) * 1e9;
}

// Limits how long a full queue takes to empty, so that no departure time overflows.
Status check_time_to_empty(const QueueOptions& options) {
  const auto room = static_cast<double>(options.max_bytes + options.trim_room_bytes);
  if (room <= kLongestQueueSeconds * bytes_per_second(options)) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "queue.max_bytes=%" PRIu64
                       ": expected what leaves within a day, %.0f bytes"
                       " at this rate, trim_room_bytes included",
                       options.max_bytes, kLongestQueueSeconds * bytes_per_second(options));
}

Status check_red(const QueueOptions& options) {
  if (options.red_min_bytes <= options.red_max_bytes) {
    return check_probability("queue.red_probability", options.red_probability);
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "queue.red_min_bytes=%" PRIu64 ": expected at most red_max_bytes, %" PRIu64,
                       options.red_min_bytes, options.red_max_bytes);
}

Status check_codel(const QueueOptions& options) {
  if (options.codel_target_ns > 0 && options.trim_bytes > 0) {
    return Status::error(StatusCode::kInvalidArgument,
                         "queue.trim_bytes=%" PRIu32 ": expected 0 with CoDel", options.trim_bytes);
  }
  return both(both(check_range("queue.codel_interval_ns", options.codel_interval_ns, 1,
                               Codel::kIntervalMaxNs),
                   check_range("queue.codel_target_ns", options.codel_target_ns, 0,
                               options.codel_interval_ns)),
              check_range("queue.codel_packet_bytes", options.codel_packet_bytes, 1,
                          Serializer::kBytesMax));
}

Status check_deliveries(const QueueOptions& options) {
  const std::vector<std::int64_t>& times = options.deliveries_ns;
  Status status =
      both(check_count("queue.delivery_bytes", options.delivery_bytes, 1, UINT32_MAX),
           check_count("number of queue.deliveries_ns", times.size(), 0, kDeliveriesMax));
  if (times.empty() || !status.ok()) return status;
  std::int64_t from = 0;
  for (const std::int64_t time : times) {
    status = check_range("queue.deliveries_ns", time, from, kDeliveryMaxNs);
    if (!status.ok()) return status;
    from = time;
  }
  return check_range("queue.deliveries_ns (the last)", times.back(), 1, kDeliveryMaxNs);
}

}  // namespace

Status check_queue(const QueueOptions& options) {
  const Status line =
      both(check_count("queue.bits_per_second", options.bits_per_second, 1, Serializer::kRateMax),
           check_deliveries(options));
  if (Status status = both(line, check_room(options)); !status.ok()) return status;
  return both(check_time_to_empty(options), both(check_red(options), check_codel(options)));
}

}  // namespace leeway::sim
