#include "collective/lobby.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace leeway::collective {
namespace {

TEST(Lobby, KeepsTheLatest) {
  Lobby lobby;
  std::vector<std::byte> datagram(1);
  for (std::size_t i = 0; i < Lobby::kPlaces + 10; ++i) {
    datagram[0] = static_cast<std::byte>(i);
    const auto from = static_cast<Rank>(i % 3);
    const auto epoch = static_cast<std::uint32_t>(i % 2);
    const auto dropped = lobby.put({wire::PacketType::data, epoch}, from, datagram);
    ASSERT_EQ(dropped.has_value(), i >= Lobby::kPlaces);
    if (!dropped) continue;
    EXPECT_EQ(dropped->slot, static_cast<Rank>((i - Lobby::kPlaces) % 3));
    EXPECT_EQ(dropped->epoch, (i - Lobby::kPlaces) % 2);
  }
  std::vector<int> kept;
  lobby.take(0, [&](Rank, ByteSpan bytes) { kept.push_back(static_cast<int>(bytes[0])); });
  EXPECT_EQ(kept.size(), Lobby::kPlaces / 2);
  EXPECT_EQ(kept.front(), 10);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  lobby.take(0, [&](Rank, ByteSpan) { FAIL() << "taken once"; });
}

TEST(Lobby, CopiesOfAGoodbyeDriveNothingOut) {
  Lobby lobby;
  std::vector<std::byte> datagram(1);
  lobby.put({wire::PacketType::data, 7}, 1, datagram);
  for (std::size_t copy = 1; copy <= 2 * Lobby::kPlaces; ++copy) {
    datagram[0] = static_cast<std::byte>(copy);
    for (const Rank slot : {1, 2}) {
      const auto dropped = lobby.put({wire::PacketType::goodbye, 7}, slot, datagram);
      ASSERT_EQ(dropped.has_value(), copy > 1);
      if (dropped) {
        EXPECT_EQ(dropped->slot, slot);
      }
    }
    lobby.put({wire::PacketType::goodbye, 8}, 1, datagram);  // another communicator's
  }
  std::vector<std::pair<Rank, int>> kept;
  lobby.take(
      7, [&](Rank slot, ByteSpan bytes) { kept.emplace_back(slot, static_cast<int>(bytes[0])); });
  const auto latest = static_cast<int>(2 * Lobby::kPlaces);
  EXPECT_EQ(kept, (std::vector<std::pair<Rank, int>>{{1, 0}, {1, latest}, {2, latest}}));
}

}  // namespace
}  // namespace leeway::collective
