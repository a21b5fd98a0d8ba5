#include "compute/time_trace.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

std::vector<std::int64_t> parsed_times(std::string_view text) {
  const auto times = parse_time_trace(text, "t.txt");
  EXPECT_TRUE(times.ok()) << times.status().text();
  return times.ok() ? *times : std::vector<std::int64_t>{};
}
std::string error_of(std::string_view text) {
  const auto times = parse_time_trace(text, "t.txt");
  return times.ok() ? "accepted" : std::string(times.status().text());
}

TEST(TimeTrace, IsMillisecondsALine) {
  EXPECT_EQ(parsed_times("1\n2.5\n0\n"), (std::vector<std::int64_t>{1'000'000, 2'500'000, 0}));
  EXPECT_EQ(parsed_times("0.0000004\n1e3"), (std::vector<std::int64_t>{0, 1'000'000'000}));
}

TEST(TimeTrace, SkipsCommentsAndBlankLines) {
  EXPECT_EQ(parsed_times("# ms\r\n\r\n  7 \r\n\n"), (std::vector<std::int64_t>{7'000'000}));
}

TEST(TimeTrace, RefusesWhatIsNoTimeWithItsLine) {
  EXPECT_EQ(error_of("1\n\n2 3\n"),
            "t.txt:3: \"2 3\" is no time; allowed are milliseconds, 0 to 1e9");
  EXPECT_EQ(error_of("-1"), "t.txt:1: \"-1\" is no time; allowed are milliseconds, 0 to 1e9");
  EXPECT_EQ(error_of("nan"), "t.txt:1: \"nan\" is no time; allowed are milliseconds, 0 to 1e9");
  EXPECT_EQ(error_of("2e9"), "t.txt:1: \"2e9\" is no time; allowed are milliseconds, 0 to 1e9");
}

TEST(TimeTrace, RefusesAFileWithoutTimes) {
  EXPECT_EQ(error_of("# nothing\n"), "t.txt holds no times");
  EXPECT_EQ(read_time_trace("/nowhere/t.txt").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace leeway::sim
