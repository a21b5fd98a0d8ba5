#include "protocol/failures.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

constexpr std::size_t kRoom = limits::kDatagramBytesMax;

Failures::Failure failed(std::uint32_t round) {
  return {.entry = {.round = round, .failure = StatusCode::kInternal}, .opened = round + 1};
}

std::vector<std::uint32_t> listed(const wire::Report& report) {
  std::vector<std::uint32_t> rounds;
  for (const wire::OpenRound& entry : report.entries()) rounds.push_back(entry.round);
  return rounds;
}

std::vector<std::uint32_t> listed(const Failures& failures, std::uint64_t opened) {
  wire::Report report;
  failures.list(0, opened, report.open.size(), kRoom, report);
  return listed(report);
}

TEST(Failures, AreListedAsSettledUntilTwelveMoreWereOpened) {  // WIRE 3.5
  Failures failures;
  failures.add(
      {.entry = {.round = 7, .tag = {.count = 99}, .failure = StatusCode::kMismatch, .about = 3},
       .opened = 8});
  wire::Report report;
  failures.list(0, 8, report.open.size(), kRoom, report);
  ASSERT_EQ(report.open_count, 1u);
  EXPECT_EQ(report.open[0].tag.count, 99u);
  EXPECT_TRUE(report.open[0].reduce_settled && report.open[0].spread_settled);
  EXPECT_EQ(report.open[0].failure, StatusCode::kMismatch);
  EXPECT_EQ(report.open[0].about, 3);
  EXPECT_EQ(listed(failures, 8 + 11), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(listed(failures, 8 + 12), (std::vector<std::uint32_t>{}));
}

TEST(Failures, TheLatestComeFirst) {
  Failures failures;
  for (std::uint32_t round = 0; round < 20; ++round) failures.add(failed(round));
  const std::vector<std::uint32_t> rounds = listed(failures, 20);
  ASSERT_EQ(rounds.size(), 12u);
  EXPECT_EQ(rounds.front(), 19u);
  EXPECT_EQ(rounds.back(), 8u);
}

TEST(Failures, AreNotListedTwiceNorBeyondTheRoom) {
  Failures failures;
  failures.add(failed(3));
  failures.add(failed(4));
  wire::Report report;
  report.open[report.open_count++].round = 3;  // still open here
  failures.list(0, 5, report.open.size(), kRoom, report);
  EXPECT_EQ(listed(report), (std::vector<std::uint32_t>{3, 4}));
  wire::Report narrow;
  failures.list(0, 5, narrow.open.size(), wire::report_bytes(narrow) + wire::kFailedRoundBytes,
                narrow);
  EXPECT_EQ(listed(narrow), (std::vector<std::uint32_t>{4}));
  wire::Report full;
  full.open_count = static_cast<std::uint32_t>(full.open.size());
  for (auto& entry : full.open) entry.round = 100;
  failures.list(0, 5, full.open.size(), kRoom, full);
  EXPECT_EQ(full.open_count, full.open.size());
}

}  // namespace
}  // namespace leeway::protocol
