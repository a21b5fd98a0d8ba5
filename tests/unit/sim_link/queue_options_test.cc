#include "link/queue_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "link/queue.h"

namespace leeway::sim {
namespace {

TEST(CheckQueue, NamesTheParameterItsValueAndItsRange) {
  const std::vector<std::pair<QueueOptions, std::string>> refusals = {
      {{.bits_per_second = 0}, "queue.bits_per_second=0: expected 1 to 10000000000000"},
      {{.bits_per_second = UINT64_MAX}, "queue.bits_per_second=18446744073709551615"},
      {{.deliveries_ns = {5, 4}}, "queue.deliveries_ns=4: expected 5 to 86400000000000"},
      {{.deliveries_ns = {0}}, "queue.deliveries_ns (the last)=0: expected 1 to"},
      {{.delivery_bytes = 0}, "queue.delivery_bytes=0: expected 1 to 4294967295"},
      {{.max_bytes = 0}, "queue.max_bytes=0: expected 1 to 1099511627776"},
      {{.bits_per_second = 1, .max_bytes = 11'000},
       "queue.max_bytes=11000: expected what leaves within a day, 10800 bytes"},
      {{.deliveries_ns = {1'000'000}, .delivery_bytes = 1, .max_bytes = 90'000'000},
       "queue.max_bytes=90000000: expected what leaves within a day, 86400000 bytes"},
      {{.max_packets = 0}, "queue.max_packets=0: expected 1 to 1048576"},
      {{.max_packets = 1u << 21}, "queue.max_packets=2097152"},
      {{.trim_room_bytes = UINT64_MAX}, "queue.trim_room_bytes=18446744073709551615: expected 0"},
      {{.red_min_bytes = 2, .red_max_bytes = 1}, "queue.red_min_bytes=2: expected at most"},
      {{.red_probability = 2}, "queue.red_probability=2: a probability lies between 0 and 1"},
      {{.codel_target_ns = -1}, "queue.codel_target_ns=-1: expected 0 to 100000000"},
      {{.codel_interval_ns = 0}, "queue.codel_interval_ns=0: expected 1 to 4000000000"},
      {{.codel_packet_bytes = 0}, "queue.codel_packet_bytes=0: expected 1 to 1073741824"},
      {{.trim_bytes = 64, .codel_target_ns = 5}, "queue.trim_bytes=64: expected 0 with CoDel"}};
  for (const auto& [options, names] : refusals) {
    const Status status = check_queue(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << names;
    EXPECT_NE(std::string(status.text()).find(names), std::string::npos)
        << status.text() << " instead of " << names;
    EXPECT_FALSE(Queue::make(options, 0, 0).ok()) << names;
  }
}

}  // namespace
}  // namespace leeway::sim
