#include "doctor/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace leeway::tools::doctor {
namespace {

using ::testing::HasSubstr;

TEST(DoctorPaths, AllPairsMeetOnce) {
  for (int size = 2; size <= 9; ++size) {
    std::set<std::pair<int, int>> met;
    const int rounds = size + size % 2 - 1;
    for (int round = 0; round < rounds; ++round) {
      for (int rank = 0; rank < size; ++rank) {
        const int partner = partner_of(rank, round, size);
        if (partner < 0) continue;
        EXPECT_NE(partner, rank);
        EXPECT_EQ(partner_of(partner, round, size), rank) << size << " " << round;
        EXPECT_TRUE(met.emplace(rank, partner).second);
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(size) * (size - 1));
  }
}

TEST(DoctorPaths, TextSaysWhatFirewallsMustLetThrough) {
  PathsReport report;
  report.addresses = {"10.0.0.1", "10.0.0.2"};
  report.paths = {{0, 1, 0.02, 0.021, 9e7, 0.015}};
  report.transport = "udp";
  report.rendezvous = "host0:29500";
  report.datagram_bytes = 1440;
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("2 ranks over udp, NOT sealed"));
  EXPECT_THAT(text, HasSubstr("     0     1    20.00 ms  21.00 ms     90.0 Mb/s    1.50 %"));
  EXPECT_THAT(text, HasSubstr("UDP, port 29501 and up (LEEWAY_PORT=29501"));
  EXPECT_THAT(text, HasSubstr("TCP, port 29500: from all hosts"));
  EXPECT_THAT(to_json(report), HasSubstr("\"bits_per_second\": 90000000.0"));
}

}  // namespace
}  // namespace leeway::tools::doctor
