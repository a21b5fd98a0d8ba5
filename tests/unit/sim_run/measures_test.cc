#include "run/measures.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(CallMeasures, AreMadeOfTheRounds) {
  RunRecord record;
  record.simulated_ns = 4'000'000;
  record.round_ms = {1, 3};
  record.rounds = {{.expected = 100,
                    .arrived = 90,
                    .arrived_first = 80,
                    .bytes_sent = 1000,
                    .contributors_mean = 3,
                    .error_mean_square = 1,
                    .value_mean_square = 4},
                   {.deadline_cuts = 2,
                    .expected = 100,
                    .arrived = 100,
                    .arrived_first = 100,
                    .bytes_sent = 3000,
                    .contributors_mean = 4,
                    .error_mean_square = 0,
                    .value_mean_square = 6}};
  const RoundBook book(2);
  const auto measures = call_measures(record, book, 1'000'000);
  const auto value = [&](const char* name) {
    for (const Measure& measure : measures) {
      if (measure.name == name) return measure.value;
    }
    ADD_FAILURE() << name;
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(value("round_ms.mean"), 2);
  EXPECT_DOUBLE_EQ(value("round_ms.p50"), 1);
  EXPECT_DOUBLE_EQ(value("round_ms.p99"), 3);
  EXPECT_DOUBLE_EQ(value("round_ms.max"), 3);
  EXPECT_DOUBLE_EQ(value("step_ms.mean"), 2);
  EXPECT_DOUBLE_EQ(value("goodput_gbps"), 4);  // 2 x 8 Mbit in 4 ms
  EXPECT_NEAR(value("loss"), 0.05, 1e-12);
  EXPECT_NEAR(value("loss_first_pass"), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(value("bytes_per_round"), 2000);
  EXPECT_DOUBLE_EQ(value("deadline_cuts"), 2);
  EXPECT_DOUBLE_EQ(value("contributors.mean"), 3.5);
  EXPECT_DOUBLE_EQ(value("error.mean_square"), 0.5);
  EXPECT_DOUBLE_EQ(value("error.nmse"), 0.1);
}

}  // namespace
}  // namespace leeway::sim
