#include "codec/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace leeway::tools::codecs {
namespace {

using testing::HasSubstr;

const Machine kMachine{"Some CPU", "L1 48K, L2 1024K", 2};

std::vector<BenchRow> two_sizes() {
  BenchRow best;
  best.codec = "nvfp4";
  best.target = "AVX2";
  best.bytes = 256 << 10;
  best.encode_nearest = Speed{12.34, 0.123, 0.25};
  best.decode = Speed{100.0, 1.0, 1.25};
  best.accumulate = Speed{88.0, 0.88, 1.1};
  best.copy = 100;
  best.add = 80;
  BenchRow definition = best;
  definition.target = kDefinition;
  definition.encode_nearest = Speed{0.5, 0.005, 0.006};
  BenchRow memory = best;
  memory.bytes = 64 << 20;
  memory.copy = 12;
  return {best, definition, memory};
}

TEST(BenchText, NamesTheMachine) {
  EXPECT_THAT(bench_text(two_sizes(), kMachine),
              testing::StartsWith("Some CPU, L1 48K, L2 1024K, 2 cores\nOne core, AVX2;"));
}

TEST(BenchText, HasATableASize) {
  const std::string text = bench_text(two_sizes(), kMachine);
  EXPECT_THAT(text,
              HasSubstr("\n256 KiB of float32 a buffer: memcpy 100.0 GB/s, y += x 80.0 GB/s\n"));
  EXPECT_THAT(text,
              HasSubstr("\n64 MiB of float32 a buffer: memcpy 12.0 GB/s, y += x 80.0 GB/s\n"));
}

TEST(BenchText, DefinitionStandsBelowItsCodec) {
  EXPECT_THAT(bench_text(two_sizes(), kMachine),
              testing::ContainsRegex("\nnvfp4 +12.3 +0.12 +- +100.0 +1.00 +88.0 +0.88 +1.10\n"
                                     "  definition +0.50 +0.005 "));
}

TEST(BenchText, FitsIntoEightyColumns) {
  auto rows = two_sizes();
  rows[0].codec = rows[1].codec = "fp8_e4m3_block";
  rows[0].encode_stochastic = Speed{123.4, 10.25, 10.25};
  std::istringstream stream(bench_text(rows, kMachine));
  for (std::string line; std::getline(stream, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(BenchJson, HoldsEveryFigure) {
  const auto document = nlohmann::json::parse(bench_json(two_sizes(), kMachine));
  EXPECT_EQ(document["machine"]["processor"], "Some CPU");
  EXPECT_EQ(document["machine"]["cores"], 2);
  ASSERT_EQ(document["rows"].size(), 3u);
  const auto& row = document["rows"][0];
  EXPECT_EQ(row["codec"], "nvfp4");
  EXPECT_EQ(row["target"], "AVX2");
  EXPECT_EQ(row["bytes"], 256 << 10);
  EXPECT_EQ(row["memcpy_GBps"], 100.0);
  EXPECT_EQ(row["encode_nearest"]["to_memcpy"], 0.123);
  EXPECT_TRUE(row["encode_stochastic"].is_null());
  EXPECT_EQ(row["decode_accumulate"]["to_add"], 1.1);
}

}  // namespace
}  // namespace leeway::tools::codecs
