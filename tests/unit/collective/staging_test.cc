#include "collective/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace leeway::collective {
namespace {

constexpr std::size_t kBytes = 100;

TEST(Staging, KeepsWhatWasGivenBackWhereItIsToldTo) {
  Staging staging;
  staging.reset(2, 3, kBytes, /*keeps=*/true);
  std::byte* const place = staging.lend(1, {2});
  std::memset(place, 0x7E, kBytes);
  staging.give_back({2});
  std::memset(staging.lend(0, {2}), 0x11, kBytes);
  EXPECT_EQ(staging.lend(1, {2}), place);
  EXPECT_EQ(staging.at(1, {2})[kBytes - 1], std::byte{0x7E});
}

TEST(Staging, EveryContributionKeepsItsBytesUntilItsPacketIsGivenBack) {
  constexpr int kRanks = 5;
  constexpr std::uint32_t kPackets = 40;
  Staging staging;
  std::mt19937 random(7);
  for (int call = 0; call < 3; ++call) {
    staging.reset(kRanks, kPackets, kBytes);
    std::vector<std::pair<Rank, std::uint32_t>> order;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (std::uint32_t packet = 0; packet < kPackets; ++packet) order.emplace_back(rank, packet);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::map<std::uint32_t, std::set<Rank>> waiting;
    for (const auto& [rank, packet] : order) {
      std::memset(staging.lend(rank, {packet}), static_cast<int>(rank * kPackets + packet), kBytes);
      waiting[packet].insert(rank);
      if (waiting[packet].size() < kRanks - random() % 2) continue;
      for (const Rank here : waiting[packet]) {
        const std::byte expected{static_cast<unsigned char>(here * kPackets + packet)};
        const std::byte* bytes = staging.at(here, {packet});
        EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [&](std::byte b) { return b == expected; }));
      }
      staging.give_back({packet});
      waiting[packet].clear();
    }
  }
}

TEST(Staging, PlacesGivenBackAreLentAgainLatestFirst) {
  Staging staging;
  staging.reset(3, 100, kBytes);
  std::byte* const first = staging.lend(1, {0});
  std::byte* const second = staging.lend(1, {1});
  staging.give_back({0});
  staging.give_back({1});
  EXPECT_EQ(staging.lend(2, {50}), second);
  EXPECT_EQ(staging.lend(2, {51}), first);
}

TEST(Staging, TouchesAsManyPlacesAsAreOutAtATime) {
  Staging staging;
  staging.reset(3, 1000, kBytes);
  std::set<std::byte*> places;
  for (std::uint32_t packet = 0; packet < 1000; ++packet) {
    places.insert(staging.lend(1, {packet}));
    places.insert(staging.lend(2, {packet}));
    if (packet >= 4) staging.give_back({packet - 4});
  }
  EXPECT_EQ(places.size(), 2u * 5u);
}

TEST(Staging, PlacesStartOnCacheLines) {
  Staging staging;
  staging.reset(2, 3, kBytes);
  for (std::uint32_t packet = 0; packet < 3; ++packet) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(staging.lend(1, {packet})) % GrowingBuffer::kAlign,
              0u);
  }
}

}  // namespace
}  // namespace leeway::collective
