#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/report.h"
#include "unit/sim_report/made_up_runs.h"

namespace leeway::sim {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t commas(const std::string& line) {
  return static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
}

CellRecord one_run(std::size_t index, const std::string& setting, std::uint64_t seed) {
  CellRecord cell{index, {{"ranks", setting}}, {}};
  RunRecord run;
  run.seed = seed;
  RoundRecord round;
  round.round = 4;
  round.begin_ns = 1'000'000;
  round.first_submit_ns = 2'500'000;
  round.end_ns = 12'500'001;
  round.call_ns_max = 10'000'000;
  round.call_ns_median = 9'000'000;
  round.live_ranks = 8;
  round.failed_calls = 1;
  round.deadline_cuts = 2;
  round.expected = 100;
  round.arrived = 90;
  round.arrived_first = 80;
  round.bytes_sent = 123456;
  round.contributors_mean = 7.25;
  round.contributors_min = 5;
  round.error_mean_square = 0.125;
  run.rounds = {round};
  LinkRecord link;
  link.name = "0>1";
  link.utilisation = 0.5;
  link.counters.bytes_passed = 11;
  link.counters.offered = {1, 2, 3};
  link.counters.passed = {4, 5, 6};
  link.counters.lost = {7, 8, 9};
  link.counters.copied = {10, 11, 12};
  link.counters.queue_full = 13;
  link.counters.queue_early = 14;
  link.counters.marked = 15;
  link.counters.trimmed = 16;
  link.counters.corrupted = 17;
  link.counters.reordered = 18;
  link.counters.queue_bytes_max = 19;
  run.links = {link};
  cell.runs = {run};
  return cell;
}

TEST(RoundsCsv, ColumnsAndValues) {
  const std::vector<CellRecord> cells = {one_run(0, "8", 3)};
  EXPECT_EQ(rounds_csv(cells),
            "ranks,cell,seed,round,begin_ms,submit_ms,round_ms,call_ms_max,call_ms_median,"
            "live_ranks,failed_calls,deadline_cuts,expected,arrived,arrived_first,bytes_sent,"
            "contributors_mean,contributors_min,error_mean_square,value_mean_square,drift_pair,"
            "loss\n"
            "8,0,3,4,1,2.5,10.000001,10,9,8,1,2,100,90,80,123456,7.25,5,0.125,,,\n");
}

TEST(LinksCsv, ColumnsAndValues) {
  const std::vector<CellRecord> cells = {one_run(0, "8", 3)};
  EXPECT_EQ(links_csv(cells),
            "ranks,cell,seed,link,utilisation,bytes_passed,data_offered,data_passed,data_lost,"
            "data_copied,control_offered,control_passed,control_lost,control_copied,cross_offered,"
            "cross_passed,cross_lost,cross_copied,queue_full,queue_early,marked,trimmed,corrupted,"
            "reordered,queue_bytes_max\n"
            "8,0,3,0>1,0.5,11,1,4,7,10,2,5,8,11,3,6,9,12,13,14,15,16,17,18,19\n");
}

TEST(RoundsCsv, OrderedByCellAndSeedHoweverTheyCame) {
  CellRecord second = one_run(1, "16", 2);
  second.runs.push_back(one_run(1, "16", 1).runs[0]);
  const std::vector<CellRecord> cells = {second, one_run(0, "8", 9), {2, {{"ranks", "32"}}, {}}};
  const std::vector<std::string> lines = lines_of(rounds_csv(cells));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[1].starts_with("8,0,9,"));
  EXPECT_TRUE(lines[2].starts_with("16,1,1,"));
  EXPECT_TRUE(lines[3].starts_with("16,1,2,"));
}

TEST(RoundsCsv, TextsWithCommasAndQuotesAreQuoted) {
  CellRecord cell = one_run(0, "list { index: [1, 2] } \"x\"", 1);
  const std::vector<std::string> lines = lines_of(rounds_csv(std::vector{cell}));
  EXPECT_TRUE(lines[1].starts_with("\"list { index: [1, 2] } \"\"x\"\"\",0,1,")) << lines[1];
}

TEST(Csv, EveryLineHasTheHeadersColumns) {
  const ReportInput input = made_up_sweep();
  for (const std::string& text : {rounds_csv(input.cells), links_csv(input.cells)}) {
    const std::vector<std::string> lines = lines_of(text);
    for (const std::string& line : lines) ASSERT_EQ(commas(line), commas(lines[0])) << line;
  }
  EXPECT_EQ(lines_of(rounds_csv(input.cells)).size(), 1u + 15 * 3 * 100);
  EXPECT_EQ(lines_of(links_csv(input.cells)).size(), 1u + 15 * 3 * 32);
}

}  // namespace
}  // namespace leeway::sim
