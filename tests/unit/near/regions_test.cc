#include "near/regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "unit/near/ranks.h"

namespace leeway::near {
namespace {

using namespace std::chrono_literals;
using collective::OperationSpec;
using ::testing::HasSubstr;

constexpr std::size_t kElements = 600'000;  // more than one chunk of a direct call

using Owned = std::vector<std::shared_ptr<Region>>;

Owned allocate(Ranks& ranks, std::size_t bytes = kElements * sizeof(float)) {
  Owned all(static_cast<std::size_t>(ranks.size()));
  ranks.each([&](Rank rank) {
    auto region = ranks.caller(rank).allocate(bytes, ranks.next_number(rank), ranks.now(), 10s);
    ASSERT_TRUE(region.ok()) << region.status().c_str();
    all[rank] = *region;
  });
  return all;
}

float* floats_of(const std::shared_ptr<Region>& region) {
  return reinterpret_cast<float*>(region->memory().data());
}

OperationSpec all_reduce_of(const float* in, float* out, std::size_t elements = kElements) {
  return {.kind = collective::OperationKind::all_reduce,
          .input = {in, elements, DataType::f32},
          .output = {out, elements, DataType::f32}};
}

void expect_sums(Ranks& ranks, const std::function<float*(Rank)>& in,
                 const std::function<float*(Rank)>& out) {
  const auto n = static_cast<float>(ranks.size());
  ranks.each([&](Rank rank) {
    std::fill_n(in(rank), kElements, static_cast<float>(rank + 1));
    const auto outcome = ranks.run(rank, all_reduce_of(in(rank), out(rank)));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.c_str();
    for (std::size_t i = 0; i < kElements; ++i) ASSERT_EQ(out(rank)[i], n * (n + 1) / 2) << i;
  });
}

int files_left() {
  int left = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    left += entry.path().filename().string().starts_with("leeway-test-");
  return left;
}

TEST(Allocate, GivesMemoryThatAllRanksMapAndNoNames) {
  Ranks ranks(3);
  const Owned all = allocate(ranks, 5000);
  for (const auto& region : all) {
    EXPECT_TRUE(region->shared());
    EXPECT_EQ(region->memory().size(), 8192u);
    EXPECT_EQ(region->memory()[4999], std::byte{0});
  }
  EXPECT_EQ(files_left(), 0);
}

TEST(Allocate, WithoutAFolderIsOrdinaryMemory) {
  Ranks ranks(2, 4096, "/dev/shm/no/such");
  const Owned all = allocate(ranks);
  EXPECT_FALSE(all[0]->shared());
  expect_sums(
      ranks, [&](Rank rank) { return floats_of(all[rank]); },
      [&](Rank rank) { return floats_of(all[rank]); });
  EXPECT_EQ(ranks.caller(0).counters().direct, 0u);
}

TEST(Allocate, OfDifferentSizesIsAMismatch) {
  Ranks ranks(2);
  ranks.each([&](Rank rank) {
    const auto region = ranks.caller(rank).allocate(rank == 0 ? 4096 : 8192,
                                                    ranks.next_number(rank), ranks.now(), 10s);
    EXPECT_EQ(region.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(region.status().c_str(), HasSubstr("allocate of 8192 bytes"));
  });
  EXPECT_EQ(files_left(), 0);
}

TEST(Allocate, BesideAnotherCallIsAMismatch) {
  Ranks ranks(2);
  ranks.each([&](Rank rank) {
    std::vector<float> values(10);
    const Status status =
        rank == 0 ? ranks.caller(0).allocate(4096, ranks.next_number(0), ranks.now(), 10s).status()
                  : ranks.run(1, near::all_reduce_of(values)).status;
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.c_str();
  });
}

TEST(Allocate, HasManyPlacesAndIsOrdinaryBeyondThem) {
  Ranks ranks(2);
  std::vector<Owned> kept;
  for (std::size_t i = 0; i < kRegionsMax; ++i) kept.push_back(allocate(ranks, 4096));
  EXPECT_TRUE(kept.back()[0]->shared());
  EXPECT_FALSE(allocate(ranks, 4096)[0]->shared());
  kept.erase(kept.begin() + 3);
  EXPECT_TRUE(allocate(ranks, 4096)[1]->shared());
}

TEST(DirectCall, IsRightInPlaceAndNot) {
  Ranks ranks(3);
  const Owned a = allocate(ranks);
  const Owned b = allocate(ranks);
  const auto in = [&](Rank rank) { return floats_of(a[rank]); };
  const auto out = [&](Rank rank) { return floats_of(b[rank]); };
  for (int i = 0; i < 3; ++i) {
    expect_sums(ranks, in, out);
    expect_sums(ranks, in, in);
  }
  EXPECT_EQ(ranks.caller(0).counters().direct, 6u);
}

TEST(Allocate, GoesOnInTheParentOfAForksChild) {
  Ranks ranks(2);
  Owned all = allocate(ranks);
  const pid_t child = ::fork();
  if (child == 0) {
    all.clear();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ranks.line(0).freed, 0u);
  const auto of = [&](Rank rank) { return floats_of(all[rank]); };
  expect_sums(ranks, of, of);
  EXPECT_EQ(ranks.caller(0).counters().direct, 1u);
}

TEST(DirectCall, MayUseAnotherRegionOnEachRank) {
  Ranks ranks(2);
  const Owned a = allocate(ranks);
  const Owned b = allocate(ranks);
  const auto in = [&](Rank rank) { return floats_of(rank == 0 ? a[0] : b[1]); };
  expect_sums(ranks, in, in);
  EXPECT_EQ(ranks.caller(1).counters().direct, 1u);
}

// If any rank has any part of a tensor outside shared memory, all ranks use slots.
TEST(DirectCall, IsNotWhereARankHasItsTensorElsewhere) {
  Ranks ranks(3);
  Owned a = allocate(ranks);
  std::vector<float> own(kElements);
  const auto in = [&](Rank rank) { return rank == 1 ? own.data() : floats_of(a[rank]); };
  for (int i = 0; i < 3; ++i) expect_sums(ranks, in, in);
  const auto out = [&](Rank rank) { return rank == 1 ? own.data() : floats_of(a[rank]); };
  expect_sums(
      ranks, [&](Rank rank) { return floats_of(a[rank]); }, out);
  EXPECT_EQ(ranks.caller(0).counters().direct, 0u);
  expect_sums(
      ranks, [&](Rank rank) { return floats_of(a[rank]); },
      [&](Rank rank) { return floats_of(a[rank]); });
  EXPECT_EQ(ranks.caller(0).counters().direct, 1u);
}

TEST(DirectCall, IsOverWhereARankHasGivenItsMemoryBack) {
  Ranks ranks(2);
  Owned a = allocate(ranks);
  std::vector<float> own(kElements);
  a[1].reset();
  const auto in = [&](Rank rank) { return rank == 1 ? own.data() : floats_of(a[0]); };
  expect_sums(ranks, in, in);
  const Owned b = allocate(ranks);
  const auto of_b = [&](Rank rank) { return floats_of(b[rank]); };
  expect_sums(ranks, of_b, of_b);
  EXPECT_EQ(ranks.caller(0).counters().direct, 1u);
}

TEST(DirectCall, MemoryMayOutliveItsRanks) {
  Owned a;
  {
    Ranks ranks(2);
    a = allocate(ranks);
    ranks.caller(0).close();
    ranks.caller(1).close();
  }
  floats_of(a[0])[kElements - 1] = 1.0f;
  a.clear();
}

// The peer has posted all steps, but has given up the call since. So its memory may have changed
// while this rank read it.
TEST(DirectCall, FailsWhereAPeerLeftItWhileItsTensorWasRead) {
  Ranks ranks(2);
  const Owned a = allocate(ranks);
  std::vector<float> shape(kElements);
  const Plan plan = plan_of(near::all_reduce_of(shape), 2, 4096);
  Descriptor& peer = ranks.line(1).descriptors[0];
  peer.call = 2;
  peer.what = plan.what();
  peer.count = plan.count;
  peer.condition = 0;
  peer.from = peer.to = 1;  // number of the call that allocated the memory
  peer.from_at = peer.to_at = 0;
  ranks.line(1).gave_up = 2;
  ranks.line(1).progress = progress_of(2, 1000);
  const auto outcome = ranks.run(0, all_reduce_of(floats_of(a[0]), floats_of(a[0])));
  EXPECT_EQ(outcome.status.code(), StatusCode::kPeerLost);
  EXPECT_THAT(outcome.status.c_str(), HasSubstr("rank 1 could not go on with it"));
}

TEST(DirectCall, DoesNotBelieveWherePeersSayTheirMemoryIs) {
  const std::size_t bytes = kElements * sizeof(float);
  struct Claim {
    std::uint64_t number, at;
  };
  for (const Claim claim : {Claim{1, 8192}, Claim{1, ~std::uint64_t{0}}, Claim{1, 0 - bytes},
                            Claim{9, 0}, Claim{~std::uint64_t{0}, 0}}) {
    Ranks ranks(2);
    const Owned a = allocate(ranks);
    std::vector<float> shape(kElements);
    const Plan plan = plan_of(near::all_reduce_of(shape), 2, 4096);
    Descriptor& peer = ranks.line(1).descriptors[0];
    peer.call = 2;
    peer.what = plan.what();
    peer.count = plan.count;
    peer.condition = 0;
    peer.from = peer.to = claim.number;
    peer.from_at = peer.to_at = claim.at;
    ranks.line(1).progress = progress_of(2, 1000);
    const auto outcome = ranks.run(0, all_reduce_of(floats_of(a[0]), floats_of(a[0])));
    EXPECT_EQ(outcome.status.code(), StatusCode::kMismatch) << claim.at;
  }
}

}  // namespace
}  // namespace leeway::near
