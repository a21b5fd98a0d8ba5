#include <gtest/gtest.h>

#include "train/data_parallel.h"

namespace leeway::tools::train {
namespace {

CollectiveReport report_of(std::uint64_t expected, std::uint64_t arrived, std::uint64_t repaired) {
  CollectiveReport report;
  report.peers = {{.rank = 1, .expected = expected, .arrived = arrived, .repaired = repaired}};
  return report;
}

TEST(TrafficLoss, IsZeroBeforeAnythingWasExpected) {
  EXPECT_EQ(Traffic{}.loss(), 0.0);
}

TEST(TrafficLoss, CountsARepairedPacketAsLostByTheNetwork) {
  Traffic traffic;
  traffic.add(report_of(100, 95, 5));
  EXPECT_DOUBLE_EQ(traffic.loss(), 0.10);
}

TEST(TrafficLoss, WeighsOperationsByTheirPackets) {
  Traffic traffic;
  traffic.add(report_of(300, 300, 0));
  traffic.add(report_of(100, 60, 0));
  EXPECT_DOUBLE_EQ(traffic.loss(), 0.10);
}

TEST(TrafficAdd, SumsOverPeersAndOperations) {
  CollectiveReport report = report_of(10, 9, 0);
  report.peers.push_back({.rank = 2, .expected = 20, .arrived = 18, .repaired = 1});
  report.bytes_sent = 1000;
  report.elements_untouched = 7;
  report.deadline_cut = true;
  Traffic traffic;
  traffic.add(report);
  traffic.add(report);
  EXPECT_EQ(traffic.packets_expected, 60u);
  EXPECT_EQ(traffic.packets_arrived_first, 52u);
  EXPECT_EQ(traffic.bytes_sent, 2000u);
  EXPECT_EQ(traffic.elements_untouched, 14u);
  EXPECT_EQ(traffic.deadline_cuts, 2u);
}

}  // namespace
}  // namespace leeway::tools::train
