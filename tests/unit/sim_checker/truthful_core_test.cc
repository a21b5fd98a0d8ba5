// The unchanged core must break no invariant, and every invariant that applies must be checked.
#include <gtest/gtest.h>

#include <sstream>

#include "core_run.h"

namespace leeway::sim {
namespace {

struct Case {
  const char* name;
  const char* operation;
  const char* link;
  const char* looked_at;  // ids of invariants that must have been checked
};
void PrintTo(const Case& which, std::ostream* out) {
  *out << which.name;
}

constexpr const char* kCleanPath = "link { delay_ms { fixed: 0.5 } }";
constexpr const char* kLossyPath = "link { delay_ms { fixed: 0.5 } loss { random { p: 0.1 } } }";
constexpr const char* kRough =
    "link { delay_ms { normal { mean: 1 deviation: 0.2 } } loss { bursts { p: 0.05 burst: 4 } } "
    "duplicate { p: 0.05 } reorder { p: 0.05 by_ms: 2 } corrupt { p: 0.02 } }";
constexpr const char* kNarrow =
    "link { rate_mbps: 200 delay_ms { fixed: 1 } queue { bytes: 30000 } }";

const Case kCases[] = {
    {"CleanExact", "delivery { kind: exact }", kCleanPath, "i1 i2 i3 i4 i5 i6 i7 i8 i13"},
    {"CleanBestEffort", "delivery { kind: best_effort }", kCleanPath,
     "i1 i2 i3 i4 i5 i6 i7 i8 i13"},
    {"LossyRatio", "estimator: ratio", kLossyPath, "i1 i2 i3 i4 i5 i6 i8 i13"},
    {"LossySymmetric", "estimator: symmetric_ratio", kLossyPath, "i2 i3 i5 i6"},
    {"LossyStratified", "estimator: stratified", kLossyPath, "i2 i3 i5 i6"},
    {"LossyZeroFill", "estimator: zero_fill", kLossyPath, "i2 i3 i5 i6"},
    {"LossyHorvitzThompson", "estimator: horvitz_thompson", kLossyPath, "i2 i3 i5 i6"},
    {"LossyAugmented", "estimator: augmented", kLossyPath, "i2 i3 i5 i6"},
    {"LossyBounded", "delivery { kind: bounded loss_max: 0.02 }", kLossyPath, "i2 i3 i5 i6"},
    {"LossyExact", "delivery { kind: exact }", kLossyPath, "i2 i3 i5 i6"},
    {"LossyInt8", "codec: \"int8\"", kLossyPath, "i2 i3 i5 i6"},
    {"LossyNvfp4", "codec: \"nvfp4\"", kLossyPath, "i2 i3 i5 i6"},
    {"LossyBf16", "codec: \"bf16\" error_feedback: true", kLossyPath, "i2 i3 i5 i6"},
    {"LossySpread", "spread: best_effort", kLossyPath, "i2 i3 i5 i6"},
    {"RoughRatio", "estimator: ratio", kRough, "i1 i2 i3 i4 i5 i6 i8 i13"},
    {"RoughHorvitzThompson", "estimator: horvitz_thompson", kRough, "i2 i3 i5 i6"},
    {"RoughExact", "delivery { kind: exact }", kRough, "i2 i3 i5 i6"},
    {"NarrowRatio", "estimator: ratio", kNarrow, "i1 i2 i3 i5 i6"},
    {"LossyReduceScatter", "kind: reduce_scatter", kLossyPath, "i2 i3 i5"},
    {"LossyAllGather", "kind: all_gather delivery { kind: exact }", kLossyPath, "i3 i6"},
    {"LossyBroadcast", "kind: broadcast delivery { kind: exact }", kLossyPath, "i3 i6"},
    {"LossyAllToAll", "kind: all_to_all delivery { kind: exact }", kLossyPath, "i3 i6"},
    {"LossyAllToAllInt8", "kind: all_to_all codec: \"int8\" delivery { kind: exact }", kLossyPath,
     "i3 i6"},
    {"LossyReplica", "kind: replica_step replica { age_max: 2 }", kLossyPath, "i2 i3 i5 i6"},
    {"RoughReplicaBf16", "kind: replica_step replica { age_max: 2 codec: \"bf16\" }", kRough,
     "i2 i3 i5 i6"},
};

class TruthfulCore : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Operations, TruthfulCore, ::testing::ValuesIn(kCases),
                         [](const auto& which) { return std::string(which.param.name); });

TEST_P(TruthfulCore, BreaksNothing) {
  for (const int bytes : {4000, 300000}) {
    const std::string text = "ranks: 4 rounds: 6 operation { bytes: " + std::to_string(bytes) +
                             " " + GetParam().operation + " } " + GetParam().link;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto records = CoreRun(text, seed).run();
      EXPECT_EQ(failed(records), "") << text << " seed " << seed;
      std::istringstream ids(GetParam().looked_at);
      for (std::string id; ids >> id;) {
        EXPECT_GT(record_of(records, id).checked, 0u) << id;
      }
    }
  }
}

TEST(TruthfulCore, SettlesChunksBeforeTheEnd) {
  const auto records =
      CoreRun(std::string("ranks: 3 rounds: 3 operation { bytes: 3000000 } ") + kRough, 5).run();
  EXPECT_EQ(failed(records), "");
}

TEST(TruthfulCore, IsCutByItsDeadline) {
  const auto records = CoreRun(
                           "ranks: 4 rounds: 5 operation { bytes: 400000 delivery { "
                           "deadline_ms: 20 } } link { rate_mbps: 50 delay_ms { fixed: 2 } }",
                           1)
                           .run();
  EXPECT_EQ(failed(records), "");
}

// If a rank is heard only after the owner's deadline for the reduce half, the owner does not know
// the rank's weight. The checkers must accept that.
TEST(TruthfulCore, KnowsNoWeightThatCameTooLate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto records =
        CoreRun(
            "ranks: 4 rounds: 3 operation { bytes: 16384 estimator: stratified datagram_bytes: 512 "
            "confirm_use: true owner_weights: true delivery { deadline_ms: 15.187 } } "
            "link { delay_ms { normal { mean: 15.436 deviation: 7.718 } } } "
            "link { to: \"3\" delay_ms { fixed: 0.084 } }",
            seed)
            .run();
    EXPECT_EQ(failed(records), "") << seed;
  }
}

TEST(TruthfulCore, RefusesWhatHasNoMeaning) {
  const auto records = CoreRun(
                           "ranks: 2 rounds: 2 operation { kind: all_gather bytes: 4000 "
                           "delivery { kind: best_effort } }",
                           1)
                           .run();
  EXPECT_EQ(failed(records), "");
}

TEST(TruthfulCore, OfOneRankReducesAlone) {
  const auto records =
      CoreRun("ranks: 1 rounds: 2 operation { bytes: 4000 codec: \"bf16\" }", 1).run();
  EXPECT_EQ(failed(records), "");
}

}  // namespace
}  // namespace leeway::sim
