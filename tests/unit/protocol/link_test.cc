#include "protocol/link.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

Instant at(std::int64_t us) {
  return Instant{1'000'000'000 + us * 1000};
}

TEST(LinkReport, ProbesGrowRarerUntilThereIsCredit) {
  Path path;
  path.configure(4, 10ms);
  Link link;
  link.attach(path);
  for (int i = 0; i < 20; ++i) path.take_sequence(at(0));
  link.probe_tries = 3;
  EXPECT_TRUE(link.on_report(at(1), {.largest_sequence = 10, .received = 10, .delay = 0us}));
  EXPECT_EQ(path.credit(), 0u);
  EXPECT_EQ(link.probe_tries, 3u);
  EXPECT_TRUE(link.on_report(at(2), {.largest_sequence = 18, .received = 18, .delay = 0us}));
  EXPECT_EQ(path.credit(), 2u);
  EXPECT_EQ(link.probe_tries, 0u);
}

TEST(LinkArrival, AReportIsWantedForWhatOtherCommunicatorsBrought) {
  Path path;
  path.configure(8, 10ms);
  Link one;
  Link other;
  one.attach(path);
  other.attach(path);
  one.on_arrival(at(1), 1, 100);
  other.on_arrival(at(2), 2, 100);
  EXPECT_TRUE(one.report_wanted() && other.report_wanted());
  one.on_reported();
  EXPECT_FALSE(other.report_wanted()) << "one report tells of the path as a whole";
  EXPECT_EQ(one.silence(at(5)), 4us) << "silence is each communicator's own";
}

}  // namespace
}  // namespace leeway::protocol
