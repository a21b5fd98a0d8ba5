// The expected lines are what nccl-tests 2.19.6 (src/util.cu) prints for the same values.
#include "perf/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace leeway::tools::perf {
namespace {

using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

Row row_of_16_mib() {
  Row row;
  row.bytes = 16777216;
  row.count = 4194304;
  row.type = "float";
  row.redop = "sum";
  row.out_of_place = {.time_us = 18610.46,
                      .p50_us = 18000,
                      .p99_us = 20000.5,
                      .algbw_GBps = 0.901494,
                      .busbw_GBps = 1.352241,
                      .wrong = 0,
                      .nmse = 0};
  row.in_place = Side{.time_us = 950.5,
                      .p50_us = 940,
                      .p99_us = 990,
                      .algbw_GBps = 17.651,
                      .busbw_GBps = 26.4765,
                      .wrong = 0,
                      .nmse = 0};
  return row;
}

TEST(FormatHeader, FirstColumnsAreNcclTests) {
  const auto lines = lines_of(format_header());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "#                                                              out-of-place           "
            "            in-place          ");
  EXPECT_THAT(lines[1], StartsWith("#       size         count      type   redop    root     time  "
                                   " algbw   busbw  #wrong     time   algbw   busbw  #wrong "));
  EXPECT_THAT(lines[2], StartsWith("#        (B)    (elements)                               (us)  "
                                   "(GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "));
  EXPECT_EQ(lines[0].size(), 116u);
}

TEST(FormatHeader, OwnColumnsFollow) {
  EXPECT_THAT(lines_of(format_header())[1].substr(119),
              testing::MatchesRegex(" +loss% +nmse +late% +p50 +p99"));
}

TEST(FormatRow, FirstColumnsAreNcclTests) {
  EXPECT_EQ(format_row(row_of_16_mib()).substr(0, 118),
            "    16777216       4194304     float     sum      -1"
            "  18610.5    0.90    1.35       0   950.50   17.65   26.48       0");
}

TEST(FormatRow, UncheckedHalfSaysSo) {
  Row row = row_of_16_mib();
  row.out_of_place.wrong.reset();
  EXPECT_THAT(format_row(row),
              StartsWith("    16777216       4194304     float     sum      -1"
                         "  18610.5    0.90    1.35    N/A   950.50   17.65   26.48       0"));
}

TEST(FormatRow, HasEighteenWordsInEveryCase) {
  Row row = row_of_16_mib();
  EXPECT_EQ(words_of(format_row(row)).size(), 18u);
  row.in_place.reset();
  EXPECT_EQ(words_of(format_row(row)).size(), 18u);
  row.out_of_place.wrong.reset();
  EXPECT_EQ(words_of(format_row(row)).size(), 18u);
}

TEST(FormatRow, OwnColumnsCarryLossErrorLatenessAndPercentiles) {
  Row row = row_of_16_mib();
  row.loss = 0.1003;
  row.late = 0.0005;
  row.out_of_place.nmse = 0.0123;
  const auto words = words_of(format_row(row));
  EXPECT_THAT(std::vector<std::string>(words.begin() + 13, words.end()),
              testing::ElementsAre("10.030", "1.23e-02", "0.050", "18000.0", "20000.5"));
}

TEST(FormatRow, OwnColumnsStandUnderTheirTitles) {
  const auto header = lines_of(format_header());
  Row row = row_of_16_mib();
  EXPECT_EQ(format_row(row).size(), header[1].size() + 1);  // the row's line feed
  row.out_of_place.wrong.reset();
  EXPECT_EQ(format_row(row).size(), header[1].size() + 1);
}

TEST(FormatSpending, IsACommentOfOneLine) {
  const Spending spending{.data = 24, .report = 1.25, .bytes = 8000, .processor_us = 100};
  EXPECT_EQ(
      format_spending(spending),
      "#   a call, all ranks: 24.0 data, 0.0 repairs, 1.2 reports, 0.0 control datagrams; 100.0 "
      "us of processor, 12.500 ns a byte sent\n");
}

TEST(FormatFloat, DropsDecimalsThenUsesAnExponent) {
  EXPECT_EQ(format_float(1.234, 7), "   1.23");
  EXPECT_EQ(format_float(12345.67, 7), "12345.7");
  EXPECT_EQ(format_float(1234567.8, 7), "1234568");
  EXPECT_EQ(format_float(123456789.0, 7), "1.2e+08");
  EXPECT_EQ(format_float(123456789.0, 6), " 1e+08");
}

TEST(FormatFooter, IsNcclTests) {
  EXPECT_EQ(format_footer(0, 12.3, "all_reduce"),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 12.3 \n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n");
  EXPECT_THAT(format_footer(2, 12.3, "all_reduce"),
              StartsWith("# Out of bounds values : 2 FAILED\n"));
}

}  // namespace
}  // namespace leeway::tools::perf
