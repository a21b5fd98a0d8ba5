// The checker itself: nccl-tests' kernels, run as functions of the host, find each element that is
// wrong.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstdint>
#include <vector>

#include "verifiable.h"

namespace {

constexpr int kRanks = 4;
constexpr std::intptr_t kElements = 5'000;
constexpr std::uint64_t kSeed = 17;

int size_of(int type) {
  constexpr int kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

std::int64_t wrong(const std::vector<std::uint8_t>& results, int type, int op) {
  std::int64_t count = -1;
  EXPECT_EQ(ncclVerifiableVerify(results.data(), nullptr, kElements, type, op, kRanks, kSeed, 0,
                                 &count, nullptr),
            cudaSuccess);
  return count;
}

TEST(Verifiable, FindsEachWrongElementOfEachTypeAndReduction) {
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (int op = 0; op <= ncclNumOps; ++op) {
      SCOPED_TRACE(testing::Message() << "type " << type << ", reduction " << op);
      std::vector<std::uint8_t> results(kElements * size_of(type));
      ASSERT_EQ(ncclVerifiablePrepareExpected(results.data(), kElements, type, op, kRanks, kSeed, 0,
                                              nullptr),
                cudaSuccess);
      EXPECT_EQ(wrong(results, type, op), 0);
      // Flips a high bit, because averages may be two units off without being wrong.
      for (const std::intptr_t element : {std::intptr_t{0}, std::intptr_t{2'047}, kElements - 1})
        results[(element + 1) * size_of(type) - 1] ^= 0x10;
      EXPECT_EQ(wrong(results, type, op), 3);
    }
  }
}

TEST(Verifiable, RanksContributeDifferently) {
  std::vector<float> first(kElements);
  std::vector<float> second(kElements);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ncclVerifiablePrepareInput(rank == 0 ? first.data() : second.data(), kElements,
                                         ncclFloat32, ncclSum, kRanks, rank, kSeed, 0, nullptr),
              cudaSuccess);
  }
  EXPECT_NE(first, second);
}

}  // namespace
