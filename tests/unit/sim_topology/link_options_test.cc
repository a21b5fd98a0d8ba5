#include "topology/link_options.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "topology_of.h"

namespace leeway::sim {
namespace {

LinkProperties link_of(const std::string& settings) {
  return properties_of(topology_of("ranks: 2 link { " + settings + " }"), "0>1");
}

DelayOptions delay_of(const std::string& settings) {
  const LinkProperties link = link_of("delay_ms { " + settings + " }");
  EXPECT_EQ(link.delays.size(), 1u);
  return link.delays.at(0);
}

template <typename Model>
Model loss_of(const std::string& settings) {
  const LinkProperties link = link_of("loss { " + settings + " }");
  EXPECT_EQ(link.losses.size(), 1u);
  return std::get<Model>(link.losses.at(0));
}

// Writes a file that is named after the test.
std::string file_of(const std::string& content) {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("leeway_" + name + std::to_string(::getpid()) + ".txt"))
                               .string();
  std::ofstream(path) << content;
  return path;
}

TEST(LinkOptions, UnitsAreRoundedToTheNearest) {
  EXPECT_EQ(delay_of("fixed: 1.5").delay_ns, 1'500'000);
  EXPECT_EQ(delay_of("fixed: 0.0000016").delay_ns, 2);
  EXPECT_EQ(delay_of("fixed: 600000").delay_ns, kDelayMaxNs);
  EXPECT_EQ(line_rate_bps(link_of("rate_mbps: 0.0001234")), 123u);
  EXPECT_EQ(line_rate_bps(link_of("rate_mbps: 1e7")), 10'000'000'000'000u);
}

TEST(LinkOptions, UniformDelayHasItsMiddleAndHalfItsWidth) {
  const DelayOptions delay = delay_of("uniform { from: 2 to: 5 }");
  EXPECT_EQ(delay.shape, DelayShape::uniform);
  EXPECT_EQ(delay.delay_ns, 3'500'000);
  EXPECT_EQ(delay.jitter_ns, 1'500'000);
}

TEST(LinkOptions, ShapesAreNetems) {
  const DelayOptions normal = delay_of("normal { mean: 4 deviation: 1 correlation: 0.25 }");
  EXPECT_EQ(normal.shape, DelayShape::normal);
  EXPECT_EQ(normal.delay_ns, 4'000'000);
  EXPECT_EQ(normal.jitter_ns, 1'000'000);
  EXPECT_EQ(normal.correlation, 0.25);
  EXPECT_FALSE(normal.keep_order);
  EXPECT_EQ(delay_of("pareto { mean: 4 }").shape, DelayShape::pareto);
  const DelayOptions last = delay_of("pareto_normal { mean: 4 } keep_order: true");
  EXPECT_EQ(last.shape, DelayShape::paretonormal);
  EXPECT_TRUE(last.keep_order);
}

TEST(LinkOptions, TablesAndTracesAreFilesOfMilliseconds) {
  const std::string path = file_of("1\n2.5\n\n 4 \r\n");
  const DelayOptions table = delay_of("table: '" + path + "'");
  EXPECT_EQ(table.shape, DelayShape::table);
  EXPECT_EQ(table.values_ns, (std::vector<std::int64_t>{1'000'000, 2'500'000, 4'000'000}));
  const DelayOptions trace = delay_of("trace: '" + path + "'");
  EXPECT_EQ(trace.shape, DelayShape::trace);
  EXPECT_EQ(trace.values_ns, table.values_ns);
  std::filesystem::remove(path);
}

TEST(LinkOptions, TypicalDelaysGoIntoTheRoundTrip) {
  const std::string path = file_of("1\n2\n5\n9\n");
  const auto round_trip_ns = [&](const std::string& delay) {
    return topology_of("ranks: 2 link { from: '0' delay_ms { " + delay + " } }")
        .round_trip_ns(1, 0);
  };
  EXPECT_EQ(round_trip_ns("table: '" + path + "'"), 3'500'000);  // median
  EXPECT_EQ(round_trip_ns("trace: '" + path + "'"), 4'250'000);  // mean
  EXPECT_EQ(round_trip_ns("uniform { from: 1 to: 2 }"), 1'500'000);
  EXPECT_EQ(round_trip_ns("normal { mean: 7 deviation: 2 }"), 7'000'000);
  std::filesystem::remove(path);
}

TEST(LinkOptions, LossModels) {
  const auto random = loss_of<RandomLoss>("random { p: 0.1 correlation: 0.3 }");
  EXPECT_EQ(random.loss, 0.1);
  EXPECT_EQ(random.correlation, 0.3);
  const auto gilbert = loss_of<GilbertElliott>(
      "gilbert_elliott { p: 0.1 r: 0.2 one_minus_h: 0.3 one_minus_k: 0.4 }");
  EXPECT_EQ(gilbert.p, 0.1);
  EXPECT_EQ(gilbert.r, 0.2);
  EXPECT_EQ(gilbert.one_minus_h, 0.3);
  EXPECT_EQ(gilbert.one_minus_k, 0.4);
  const auto four =
      loss_of<FourState>("four_state { p13: 0.1 p31: 0.2 p32: 0.3 p23: 0.4 p14: 0.05 }");
  EXPECT_EQ(four.p13, 0.1);
  EXPECT_EQ(four.p31, 0.2);
  EXPECT_EQ(four.p32, 0.3);
  EXPECT_EQ(four.p23, 0.4);
  EXPECT_EQ(four.p14, 0.05);
  const auto bursts = loss_of<BurstLoss>("bursts { p: 0.1 burst: 8 }");
  EXPECT_EQ(bursts.loss, 0.1);
  EXPECT_EQ(bursts.burst, 8);
  EXPECT_EQ(loss_of<EveryLoss>("every { n: 7 }").n, 7u);
  EXPECT_EQ(loss_of<ListLoss>("list { index: [2, 5] }").numbers,
            (std::vector<std::uint64_t>{2, 5}));
  EXPECT_EQ(loss_of<SizeLoss>("pmtu { bytes: 1400 }").max_bytes, 1400u);
}

TEST(LinkOptions, LossWindowsAndTraces) {
  const auto windows =
      loss_of<WindowLoss>("window { from_ms: 1 to_ms: 2 } window { from_ms: 5 to_ms: 7 }").windows;
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[1].from_ns, 5'000'000);
  EXPECT_EQ(windows[1].until_ns, 7'000'000);
  const std::string path = file_of("0 1\n10\n");
  EXPECT_EQ(loss_of<TraceLoss>("trace { path: '" + path + "' }").lost,
            (std::vector<bool>{false, true, true, false}));
  std::filesystem::remove(path);
}

TEST(LinkOptions, LossModelsCombine) {
  EXPECT_EQ(link_of("loss { random { p: 0.1 } every { n: 5 } pmtu { bytes: 900 } }").losses.size(),
            3u);
}

TEST(LinkOptions, QueueHasTheSchemasDefaults) {
  const QueueOptions queue = link_of("rate_mbps: 1").queue;
  EXPECT_EQ(queue.max_bytes, 1'000'000u);
  EXPECT_EQ(queue.max_packets, 65'536u);
  EXPECT_EQ(queue.red_max_bytes, 0u);
  EXPECT_EQ(queue.codel_target_ns, 0);
}

TEST(LinkOptions, EcnAtIsAThreshold) {
  const QueueOptions queue = link_of("rate_mbps: 1 queue { bytes: 9000 ecn_at: 3000 }").queue;
  EXPECT_EQ(queue.max_bytes, 9000u);
  EXPECT_EQ(queue.red_min_bytes, 3000u);
  EXPECT_EQ(queue.red_max_bytes, 3000u);
  EXPECT_EQ(queue.red_probability, 1);
}

TEST(LinkOptions, RedAndCodel) {
  const QueueOptions queue =
      link_of(
          "rate_mbps: 1 queue { packets: 9 red { min_bytes: 100 max_bytes: 200 p: 0.5 }"
          " codel { target_ms: 2 interval_ms: 30 } }")
          .queue;
  EXPECT_EQ(queue.max_packets, 9u);
  EXPECT_EQ(queue.red_min_bytes, 100u);
  EXPECT_EQ(queue.red_max_bytes, 200u);
  EXPECT_EQ(queue.red_probability, 0.5);
  EXPECT_EQ(queue.codel_target_ns, 2'000'000);
  EXPECT_EQ(queue.codel_interval_ns, 30'000'000);
}

TEST(LinkOptions, TrimmingKeepsHeadersInARoomOfTheirOwn) {
  const QueueOptions queue = link_of("rate_mbps: 1 queue { trim { bytes: 80 room: 9000 } }").queue;
  EXPECT_EQ(queue.trim_bytes, 80u);
  EXPECT_EQ(queue.trim_room_bytes, 9000u);
  EXPECT_EQ(link_of("rate_mbps: 1 queue { trim {} }").queue.trim_bytes, 64u);
  EXPECT_EQ(link_of("rate_mbps: 1 queue {}").queue.trim_bytes, 0u);
}

TEST(LinkOptions, DeliveriesAreALineInPlaceOfARate) {
  const std::string path = file_of("1\n1\n3\n");
  const LinkProperties link = link_of("deliveries: '" + path + "' queue { bytes: 3000 }");
  EXPECT_TRUE(link.limited);
  EXPECT_EQ(link.queue.max_bytes, 3000u);
  EXPECT_EQ(link.queue.deliveries_ns, (std::vector<std::int64_t>{1'000'000, 1'000'000, 3'000'000}));
  EXPECT_EQ(line_rate_bps(link), 12'032'000u);  // 3 x 1,504 bytes in 3 ms
  const Topology replaced =
      topology_of("ranks: 2 link { deliveries: '" + path + "' } link { from: '0' rate_mbps: 5 }");
  EXPECT_EQ(line_rate_bps(properties_of(replaced, "0>1")), 5'000'000u);
  EXPECT_TRUE(properties_of(replaced, "0>1").queue.deliveries_ns.empty());
  EXPECT_EQ(line_rate_bps(properties_of(replaced, "1>0")), 12'032'000u);
  std::filesystem::remove(path);
}

TEST(LinkOptions, OtherFaults) {
  const LinkProperties link =
      link_of("duplicate { p: 0.1 } reorder { p: 0.2 by_ms: 3 } corrupt { p: 0.3 }");
  EXPECT_EQ(link.duplicate, 0.1);
  EXPECT_EQ(link.reorder, 0.2);
  EXPECT_EQ(link.reorder_by_ns, 3'000'000);
  EXPECT_EQ(link.corrupt, 0.3);
}

TEST(RecordFile, RefusesWithRuleFileAndLine) {
  const auto refusal = [](const std::string& settings) {
    const Result<Topology> made = try_topology("ranks: 2 link { " + settings + " }");
    EXPECT_FALSE(made.ok());
    return std::string(made.status().text());
  };
  const std::string path = file_of("1\n2 3\n");
  const std::string name = std::filesystem::path(path).filename().string();
  EXPECT_NE(refusal("delay_ms { trace: '" + path + "' }").find("line 2: \"2 3\" is no number"),
            std::string::npos);
  EXPECT_NE(refusal("loss { trace { path: '" + path + "' } }").find("something else than 0 and 1"),
            std::string::npos);
  EXPECT_NE(refusal("loss { trace { path: '" + path + "' } }").find("link[0]: "),
            std::string::npos);
  std::ofstream(path) << "3\n2\n";  // a table whose values fall
  EXPECT_NE(refusal("delay_ms { table: '" + path + "' }").find("delay.values_ns=2000000"),
            std::string::npos);
  std::ofstream(path) << "\n";
  EXPECT_NE(refusal("delay_ms { table: '" + path + "' }").find("holds no number"),
            std::string::npos);
  EXPECT_NE(refusal("loss { trace { path: '" + path + "' } }").find("no 0 and no 1"),
            std::string::npos);
  std::ofstream(path) << "-1\n";
  EXPECT_NE(refusal("delay_ms { trace: '" + path + "' }").find("no number of ms"),
            std::string::npos);
  std::filesystem::remove(path);
  EXPECT_NE(refusal("delay_ms { trace: '" + path + "' }").find("cannot be read"),
            std::string::npos);
}

}  // namespace
}  // namespace leeway::sim
