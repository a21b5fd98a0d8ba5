#include "near/plan.h"

#include <gtest/gtest.h>

namespace leeway::near {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

OperationSpec spec_of(OperationKind kind, std::size_t in, std::size_t out,
                      DataType dtype = DataType::f32) {
  return {.kind = kind, .input = {nullptr, in, dtype}, .output = {nullptr, out, dtype}};
}

TEST(Takes, CollectivesThatAreExact) {
  for (const auto kind :
       {OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::all_gather,
        OperationKind::broadcast, OperationKind::reduce, OperationKind::gather,
        OperationKind::scatter, OperationKind::all_to_all, OperationKind::barrier,
        OperationKind::split}) {
    EXPECT_TRUE(takes(spec_of(kind, 4, 4))) << to_string(kind);
  }
  for (const auto kind : {OperationKind::send, OperationKind::recv, OperationKind::exchange,
                          OperationKind::replica_reduce, OperationKind::replica_broadcast}) {
    EXPECT_FALSE(takes(spec_of(kind, 4, 4))) << to_string(kind);
  }
  OperationSpec spec = spec_of(OperationKind::all_reduce, 4, 4);
  spec.options.delivery = best_effort(std::chrono::seconds(1));
  EXPECT_FALSE(takes(spec));
}

TEST(Takes, NoCodecThatChangesBits) {
  OperationSpec spec = spec_of(OperationKind::all_reduce, 4, 4);
  spec.options.codec.codec = Codec::fp32;
  EXPECT_TRUE(takes(spec));
  spec.options.spread_codec = CodecOptions(Codec::bf16);
  EXPECT_FALSE(takes(spec));
  spec.options.spread_codec.reset();
  spec.options.codec.codec = Codec::bf16;
  EXPECT_FALSE(takes(spec));
  OperationSpec narrow = spec_of(OperationKind::all_reduce, 4, 4, DataType::bf16);
  narrow.options.codec.codec = Codec::fp32;
  EXPECT_FALSE(takes(narrow));
}

// A fact that only one rank knows must not decide the route; otherwise ranks would wait for each
// other in different places.
TEST(Takes, DoesNotHeedWhatOneRankAloneKnows) {
  OperationSpec spec = spec_of(OperationKind::all_reduce, 4, 4);
  const std::vector<double> weights = {1.0, 2.0};
  std::vector<float> residual(4);
  EXPECT_FALSE(stands_apart(spec));
  for (int what = 0; what < 4; ++what) {
    OperationSpec own = spec;
    if (what == 0) own.options.weight = 2.0;
    if (what == 1) own.options.owner_weights = weights;
    if (what == 2) own.options.residual = residual;
    if (what == 3) own.options.confirm_use = true;
    EXPECT_TRUE(takes(own)) << what;
    EXPECT_TRUE(stands_apart(own)) << what;
  }
}

TEST(Plan, ChunksHoldAllElementsOnce) {
  for (const auto kind : {OperationKind::all_reduce, OperationKind::all_gather}) {
    for (const std::size_t count : {0u, 1u, 1023u, 1024u, 1025u, 5000u}) {
      const Plan plan = plan_of(spec_of(kind, count, count), 3, 4096);
      std::size_t at = 0;
      for (std::uint64_t chunk = 0; chunk < plan.chunks; ++chunk) {
        const Part piece = plan.piece(chunk);
        EXPECT_EQ(piece.at, at);
        EXPECT_LE(piece.count * plan.element, 4096u);
        at += piece.count;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST(Plan, PiecesOfAllBlocksFitIntoASlot) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    const Plan plan = plan_of(
        spec_of(OperationKind::reduce_scatter, 10'000 * n, 10'000, DataType::f64), ranks, 4096);
    EXPECT_LE(plan.stride() * plan.pieces, 4096u) << ranks;
    EXPECT_GE(plan.chunk, 1u);
    EXPECT_GE(plan.chunk * plan.chunks, plan.length);
  }
}

TEST(Plan, EachElementHasOneOwner) {
  for (int ranks : {2, 3, 7}) {
    for (const std::size_t elements : {0u, 1u, 16u, 17u, 1000u, 1024u}) {
      const Plan plan = plan_of(spec_of(OperationKind::all_reduce, 100'000, 100'000), ranks, 4096);
      std::size_t at = 0;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Part part = plan.owned(rank, elements);
        EXPECT_EQ(part.at, at);
        at += part.count;
      }
      EXPECT_EQ(at, elements) << ranks;
    }
  }
}

TEST(Plan, SmallTensorsNeedNoOwners) {
  EXPECT_FALSE(plan_of(spec_of(OperationKind::all_reduce, 1024, 1024), 4, 65536).owners);
  EXPECT_TRUE(plan_of(spec_of(OperationKind::all_reduce, 65'536, 65'536), 4, 65536).owners);
  EXPECT_TRUE(plan_of(spec_of(OperationKind::all_reduce, 2048, 2048), 2, 4096).owners)
      << "more than one chunk";
}

}  // namespace
}  // namespace leeway::near
