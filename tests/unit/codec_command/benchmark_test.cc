// Checks that the benchmark measures everything. Its speeds do not matter here.
#include "codec/benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codec/codec.h"
#include "codec/instruction_sets.h"

namespace leeway::tools::codecs {
namespace {

std::vector<BenchRow> measure(std::initializer_list<const char*> codecs, bool all_targets = false) {
  BenchSettings settings;
  for (const char* text : codecs) settings.codecs.push_back(parse_codec(text).value());
  settings.sizes = {8 << 10};
  settings.sample_time = std::chrono::microseconds(20);
  settings.all_targets = all_targets;
  return measure_bench(settings, [](std::size_t, std::size_t, const BenchRow&) {});
}

TEST(MeasureBench, MeasuresBestInstructionSetAndDefinition) {
  const auto rows = measure({"nvfp4"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].target, codec::instruction_sets().front().name);
  EXPECT_EQ(rows[1].target, kDefinition);
  for (const BenchRow& row : rows) {
    for (const auto& speed :
         {row.encode_nearest, row.encode_stochastic, row.decode, row.accumulate}) {
      ASSERT_TRUE(speed.has_value()) << row.target;
      EXPECT_GT(speed->gigabytes_per_second, 0.0);
      EXPECT_GT(speed->to_copy, 0.0);
      EXPECT_GT(speed->to_add, 0.0);
    }
    EXPECT_GT(row.copy, 0.0);
    EXPECT_GT(row.add, 0.0);
  }
}

TEST(MeasureBench, LeavesOutRoundingsThatACodecLacks) {
  const auto rows = measure({"sparse:2/4", "nvfp4:nearest"});
  EXPECT_FALSE(rows[0].encode_nearest.has_value());
  EXPECT_TRUE(rows[0].encode_stochastic.has_value());
  EXPECT_FALSE(rows[1].encode_stochastic.has_value());
  EXPECT_EQ(rows[1].codec, "nvfp4:nearest");
}

TEST(MeasureBench, AllTargetsAreAllOfThisProcessor) {
  const auto rows = measure({"bf16:nearest"}, true);
  for (const auto& set : codec::instruction_sets()) {
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const BenchRow& row) {
      return row.target == set.name;
    })) << set.name;
  }
}

TEST(RunOn, PutsTheBestInstructionSetBack) {
  const auto before = codec::instruction_sets();
  {
    const codec::RunOn run_on(before.back());
    ASSERT_EQ(codec::instruction_sets().size(), 1u);
    EXPECT_EQ(codec::instruction_sets().front().name, before.back().name);
  }
  EXPECT_EQ(codec::instruction_sets().size(), before.size());
}

}  // namespace
}  // namespace leeway::tools::codecs
