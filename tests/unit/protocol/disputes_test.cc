#include "protocol/disputes.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

std::vector<std::uint32_t> listed(const wire::Report& report) {
  std::vector<std::uint32_t> rounds;
  for (std::uint32_t i = 0; i < report.open_count; ++i) rounds.push_back(report.open[i].round);
  return rounds;
}

std::vector<std::uint32_t> listed(const Disputes& disputes, std::uint32_t opened_below) {
  wire::Report report;
  disputes.list(0, opened_below, report);
  return listed(report);
}

TEST(Disputes, AreListedAsSettledUntilSixteenMoreWereOpened) {  // WIRE 3.5
  Disputes disputes;
  disputes.add(7, {.count = 99});
  wire::Report report;
  disputes.list(0, 8, report);
  ASSERT_EQ(report.open_count, 1u);
  EXPECT_EQ(report.open[0].tag.count, 99u);
  EXPECT_TRUE(report.open[0].reduce_settled && report.open[0].spread_settled);
  EXPECT_EQ(listed(disputes, 7 + 16), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(listed(disputes, 7 + 17), (std::vector<std::uint32_t>{}));
}

TEST(Disputes, TheLatestFourAreKept) {
  Disputes disputes;
  for (std::uint32_t round = 0; round < 6; ++round) disputes.add(round, {});
  EXPECT_EQ(listed(disputes, 6).size(), 4u);
  for (const std::uint32_t round : listed(disputes, 6)) EXPECT_GE(round, 2u);
}

TEST(Disputes, AreNotListedTwiceNorBeyondTheRoom) {
  Disputes disputes;
  disputes.add(3, {});
  disputes.add(4, {});
  wire::Report report;
  report.open[report.open_count++].round = 3;  // still open here
  disputes.list(0, 5, report);
  EXPECT_EQ(listed(report), (std::vector<std::uint32_t>{3, 4}));
  wire::Report full;
  full.open_count = static_cast<std::uint32_t>(full.open.size());
  for (auto& entry : full.open) entry.round = 100;
  disputes.list(0, 5, full);
  EXPECT_EQ(full.open_count, full.open.size());
}

}  // namespace
}  // namespace leeway::protocol
