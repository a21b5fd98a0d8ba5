#include "report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace leeway::lab {
namespace {

LabReport sample() {
  LabReport report;
  report.counters.taken = 1000;
  report.counters.delivered = 700;
  report.links.push_back({.name = "uplink 0",
                          .rate_bps = 100'000'000,
                          .counters = {.offered = {1000},
                                       .passed = {700},
                                       .bytes_passed = 1'000'000,
                                       .queue_bytes_max = 125'000,
                                       .lost = {300},
                                       .queue_full = 250}});
  report.precision.seconds = 2;
  report.precision.processor_s = 0.5;
  report.precision.late.add(20'000);
  return report;
}

TEST(LabReport, TellsDropsByTheirCause) {
  const std::string text = report_text(sample());
  EXPECT_NE(text.find("uplink 0"), std::string::npos) << text;
  EXPECT_NE(text.find("250 dropped by full queues (25.00 %), 50 lost at random"), std::string::npos)
      << text;
  EXPECT_NE(text.find("25 % of a core"), std::string::npos) << text;
  EXPECT_EQ(text.find("WARNING"), std::string::npos) << text;
}

TEST(LabReport, WarnsWhenItFellBehind) {
  LabReport report = sample();
  report.precision.device_drops = 3;
  const std::string text = report_text(report);
  EXPECT_NE(text.find("WARNING: it fell behind its own clock"), std::string::npos) << text;
  EXPECT_NE(text.find("its devices lost 3"), std::string::npos) << text;
}

TEST(LabReport, SaysTheSameToPrograms) {
  const auto json = nlohmann::json::parse(report_json(sample()));
  EXPECT_EQ(json["format"], "leeway-wan-lab");
  EXPECT_EQ(json["packets"]["queue_full"], 250);
  EXPECT_EQ(json["packets"]["random_loss"], 50);
  EXPECT_EQ(json["links"][0]["name"], "uplink 0");
  EXPECT_EQ(json["links"][0]["bps"], 4'000'000.0);
  EXPECT_EQ(json["precision"]["kept_up"], true);
}

}  // namespace
}  // namespace leeway::lab
