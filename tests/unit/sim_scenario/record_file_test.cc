#include "scenario/record_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leeway::sim::scenario {
namespace {

constexpr TimeRules kCommented{.ms_max = 1e9, .comments = true};

using Times = std::vector<std::int64_t>;

// Reads times from a temporary file with this content.
Result<Times> times_of(const std::string& content, TimeRules rules = kCommented) {
  const std::string path =
      ::testing::TempDir() + "leeway_times_" + std::to_string(::getpid()) + ".txt";
  std::ofstream(path, std::ios::binary) << content;
  const Result<Times> times = read_times_ns(path, rules);
  std::filesystem::remove(path);
  return times;
}

Times accepted(const std::string& content) {
  const Result<Times> times = times_of(content);
  EXPECT_TRUE(times.ok()) << times.status().text();
  return times.ok() ? *times : Times{};
}

std::string error_in(const std::string& content, TimeRules rules = kCommented) {
  const Result<Times> times = times_of(content, rules);
  if (times.ok()) return "accepted";
  const std::string text(times.status().text());
  return text.substr(text.find(": ") + 2);  // the file's name stands in front
}

TEST(TimesInAFile, AreMillisecondsALine) {
  EXPECT_EQ(accepted("1\n2.5\n0\n"), (Times{1'000'000, 2'500'000, 0}));
  EXPECT_EQ(accepted("0.0000004\n1e3"), (Times{0, 1'000'000'000}));
}

TEST(TimesInAFile, SkipBlankLinesAndCommentsWhereTheyAreAllowed) {
  EXPECT_EQ(accepted("# ms\r\n\r\n  7 \r\n\n"), (Times{7'000'000}));
  EXPECT_EQ(error_in("# ms\n7\n", {.ms_max = 10}),
            "line 1: \"# ms\" is no number of ms from 0 to 10");
}

TEST(TimesInAFile, AreRefusedWithTheirLine) {
  const std::string allowed = " is no number of ms from 0 to 1000000000";
  EXPECT_EQ(error_in("1\n\n2 3\n"), "line 3: \"2 3\"" + allowed);
  EXPECT_EQ(error_in("-1"), "line 1: \"-1\"" + allowed);
  EXPECT_EQ(error_in("nan"), "line 1: \"nan\"" + allowed);
  EXPECT_EQ(error_in("2e9"), "line 1: \"2e9\"" + allowed);
}

TEST(TimesInAFile, AreAtLeastOneAndNotTooMany) {
  EXPECT_EQ(error_in("# nothing\n"), "holds no number");
  EXPECT_EQ(error_in("1\n2\n3\n", {.count_max = 2, .ms_max = 10}), "more than 2 numbers");
  EXPECT_EQ(read_times_ns("/nowhere/t.txt", kCommented).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace leeway::sim::scenario
