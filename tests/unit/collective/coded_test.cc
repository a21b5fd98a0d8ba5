// Operations whose first passes end with parity (WIRE 2.10), on networks that lose, copy and delay
// datagrams. The results are the same as on a network without faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "support/reference_call.h"

namespace leeway::collective {
namespace {

using testing::CallShape;
using testing::EngineGroup;
using testing::GroupOptions;
using testing::ReferenceCall;

constexpr int kCodedRanks = 3;
constexpr int kCodedCalls = 4;

GroupOptions bad_network(std::uint64_t seed, std::size_t datagram_bytes = 1472) {
  GroupOptions options{.size = kCodedRanks, .datagram_bytes = datagram_bytes, .seed = seed};
  options.paced = true;
  options.faults = {.loss = 0.1, .duplicate = 0.05, .reorder = 0.2, .seed = seed};
  return options;
}

std::uint64_t recovered(EngineGroup& group) {
  std::uint64_t sum = 0;
  for (Rank rank = 0; rank < group.size(); ++rank)
    sum += group.engine(rank).endpoint().counters().recovered;
  return sum;
}

class CodedOperation : public ::testing::TestWithParam<std::tuple<OperationKind, DataType>> {};

TEST_P(CodedOperation, EqualsTheReference) {
  const auto [kind, dtype] = GetParam();
  for (const bool in_place : {false, true}) {
    for (const std::size_t datagram_bytes : {600, 1472}) {
      EngineGroup group(bad_network(7, datagram_bytes));
      for (int call = 0; call < kCodedCalls; ++call) {
        ReferenceCall reference({.kind = kind,
                                 .dtype = dtype,
                                 .size = kCodedRanks,
                                 .count = 30'001,
                                 .root = 1,
                                 .in_place = in_place});
        ASSERT_TRUE(reference.run(group));
        ASSERT_TRUE(reference.check()) << "call " << call << ", " << datagram_bytes << " bytes";
        ASSERT_TRUE(group.settle());
      }
      EXPECT_GT(recovered(group), 0u) << datagram_bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CodedOperation,
    ::testing::Combine(::testing::Values(OperationKind::all_reduce, OperationKind::all_gather,
                                         OperationKind::broadcast, OperationKind::gather,
                                         OperationKind::scatter, OperationKind::all_to_all,
                                         OperationKind::reduce_scatter, OperationKind::reduce),
                       ::testing::Values(DataType::f32, DataType::bf16)),
    [](const auto& row) {
      std::string name = std::string(to_string(std::get<0>(row.param))) + "_" +
                         std::string(to_string(std::get<1>(row.param)));
      std::erase(name, '_');
      return name;
    });

class CodedPackets : public ::testing::TestWithParam<const char*> {};

// Parity recovers packets as they were encoded, so their decoded values are the same, too.
TEST_P(CodedPackets, HaveTheBitsOfALossFreeNetwork) {
  constexpr std::size_t kCount = 90'001;
  const auto run = [&](const GroupOptions& options, std::uint64_t& count) {
    EngineGroup group(options);
    std::vector<std::vector<float>> results;
    for (int call = 0; call < kCodedCalls; ++call) {
      std::vector<std::vector<float>> data(kCodedRanks, std::vector<float>(kCount));
      for (Rank rank = 0; rank < kCodedRanks; ++rank) {
        for (std::size_t i = 0; i < kCount; ++i)
          data[rank][i] = static_cast<float>(
              to_unit(keyed_hash(3, static_cast<std::uint32_t>(i), call, rank, 0)) - 0.5);
      }
      const auto requests = group.submit_all([&](Rank rank) {
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = std::span(data[rank]);
        spec.output = std::span(data[rank]);
        spec.options.codec = parse_codec(GetParam()).value();
        return spec;
      });
      EXPECT_TRUE(group.run(requests));
      EXPECT_TRUE(group.settle());
      for (Rank rank = 0; rank < kCodedRanks; ++rank) {
        EXPECT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
        results.push_back(std::move(data[rank]));
      }
    }
    count = recovered(group);
    return results;
  };
  std::uint64_t none = 0;
  std::uint64_t some = 0;
  const auto clean = run({.size = kCodedRanks, .seed = 5}, none);
  GroupOptions bad = bad_network(5);
  const auto lossy = run(bad, some);
  EXPECT_EQ(none, 0u);
  EXPECT_GT(some, 0u);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    EXPECT_EQ(std::memcmp(clean[i].data(), lossy[i].data(), kCount * sizeof(float)), 0)
        << "call " << i / kCodedRanks << ", rank " << i % kCodedRanks;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, CodedPackets,
                         ::testing::Values("fp32", "bf16", "fp8_e4m3", "nvfp4", "int8", "luq"));

// A repaired packet is encoded again, which writes its residual again. So a call is done only when
// no rank can ask for a repair. Here callers overwrite the residual once the call is done.
TEST(CodedReduction, WritesNoResidualOnceItIsDone) {
  constexpr std::size_t kCount = 90'000;
  constexpr float kCallers = 777.0f;
  EngineGroup group(bad_network(11));
  for (int call = 0; call < kCodedCalls; ++call) {
    std::vector<std::vector<float>> input(kCodedRanks, std::vector<float>(kCount, 0.3f));
    std::vector<std::vector<float>> output(kCodedRanks, std::vector<float>(kCount / kCodedRanks));
    std::vector<std::vector<float>> residual(kCodedRanks, std::vector<float>(kCount));
    const auto requests = group.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = OperationKind::reduce_scatter};
      spec.input = std::span<const float>(input[rank]);
      spec.output = std::span(output[rank]);
      spec.options.codec = parse_codec("nvfp4").value();
      spec.options.residual = residual[rank];
      return spec;
    });
    std::vector<bool> done(kCodedRanks);
    ASSERT_TRUE(group.run_until([&] {
      for (Rank rank = 0; rank < kCodedRanks; ++rank) {
        if (!requests[rank]->done || done[rank]) continue;
        done[rank] = true;
        std::ranges::fill(residual[rank], kCallers);
      }
      return std::ranges::count(done, true) == kCodedRanks;
    }));
    ASSERT_TRUE(group.settle());
    for (Rank rank = 0; rank < kCodedRanks; ++rank)
      EXPECT_EQ(std::ranges::count(residual[rank], kCallers), kCount) << "rank " << rank;
  }
}

}  // namespace
}  // namespace leeway::collective
