#include "protocol/failures.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

constexpr std::size_t kRoom = limits::kDatagramBytesMax;

std::vector<std::uint32_t> listed(const wire::Report& report) {
  std::vector<std::uint32_t> rounds;
  for (std::uint32_t i = 0; i < report.open_count; ++i) rounds.push_back(report.open[i].round);
  return rounds;
}

std::vector<std::uint32_t> listed(const Failures& failures, std::uint64_t opened) {
  wire::Report report;
  failures.list(0, opened, kRoom, report);
  return listed(report);
}

TEST(Failures, AreListedAsSettledUntilSixteenMoreWereOpened) {  // WIRE 3.5
  Failures failures;
  failures.add(
      {.round = 7, .opened = 8, .tag = {.count = 99}, .code = StatusCode::kMismatch, .about = 3});
  wire::Report report;
  failures.list(0, 8, kRoom, report);
  ASSERT_EQ(report.open_count, 1u);
  EXPECT_EQ(report.open[0].tag.count, 99u);
  EXPECT_TRUE(report.open[0].reduce_settled && report.open[0].spread_settled);
  EXPECT_EQ(report.open[0].failure, StatusCode::kMismatch);
  EXPECT_EQ(report.open[0].about, 3);
  EXPECT_EQ(listed(failures, 8 + 15), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(listed(failures, 8 + 16), (std::vector<std::uint32_t>{}));
}

TEST(Failures, TheLatestComeFirst) {
  Failures failures;
  for (std::uint32_t round = 0; round < 20; ++round)
    failures.add({.round = round, .opened = round + 1});
  const std::vector<std::uint32_t> rounds = listed(failures, 20);
  ASSERT_EQ(rounds.size(), 16u);
  EXPECT_EQ(rounds.front(), 19u);
  EXPECT_EQ(rounds.back(), 4u);
}

TEST(Failures, AreNotListedTwiceNorBeyondTheRoom) {
  Failures failures;
  failures.add({.round = 3, .opened = 4});
  failures.add({.round = 4, .opened = 5});
  wire::Report report;
  report.open[report.open_count++].round = 3;  // still open here
  failures.list(0, 5, kRoom, report);
  EXPECT_EQ(listed(report), (std::vector<std::uint32_t>{3, 4}));
  wire::Report narrow;
  failures.list(0, 5, wire::report_bytes(narrow) + wire::kFailedRoundBytes, narrow);
  EXPECT_EQ(listed(narrow), (std::vector<std::uint32_t>{4}));
  wire::Report full;
  full.open_count = static_cast<std::uint32_t>(full.open.size());
  for (auto& entry : full.open) entry.round = 100;
  failures.list(0, 5, kRoom, full);
  EXPECT_EQ(full.open_count, full.open.size());
}

}  // namespace
}  // namespace leeway::protocol
