// Tests the rendezvous over loopback connections where ranks offer further transports than UDP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/rendezvous/loopback_ranks.h"

namespace leeway::rendezvous {
namespace {

TEST(JoinGroupLanes, CarriesTablesThatAreLongerThanWhatARankMaySay) {
  const std::uint16_t port = free_port();
  constexpr int kRanks = 18;
  std::vector<Joining> joining;
  for (int rank = 0; rank < kRanks; ++rank) {
    LocalConfiguration local = configuration(rank, kRanks, port);
    local.transport = TransportKind::automatic;
    local.offers = {{TransportKind::verbs,
                     std::vector<std::byte>(limits::kTransportAddressBytesMax), 4096, 1, ""}};
    local.offers.back().address.back() = static_cast<std::byte>(rank);
    joining.push_back(join(local));
  }
  std::vector<Group> groups;
  for (Joining& one : joining) {
    const auto result = one.get();
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    groups.push_back(*result);
    expect_equal(groups.back(), groups[0]);
  }
  EXPECT_GT(welcome_of(groups[0]).ByteSizeLong(), limits::kHelloBytesMax);
  EXPECT_EQ(groups[0].datagrams.kind, TransportKind::verbs);
  EXPECT_EQ(groups[0].datagrams.members[7].address.back(), std::byte{7});
}

TEST(JoinGroupLanes, TellsAllWhichRankLacksWhatIsAskedFor) {
  const std::uint16_t port = free_port();
  std::vector<Joining> joining;
  for (int rank = 0; rank < 3; ++rank) {
    LocalConfiguration local = configuration(rank, 3, port);
    local.transport = TransportKind::ucx;
    local.offers = {{TransportKind::ucx, std::vector<std::byte>(100), 4096, 1, ""}};
    if (rank == 1) local.offers = {{TransportKind::ucx, {}, 0, 0, "install it"}};
    joining.push_back(join(local));
  }
  for (Joining& one : joining) {
    const auto result = one.get();
    EXPECT_EQ(result.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(text(result), "rank 1 cannot use ucx: install it");
  }
}

}  // namespace
}  // namespace leeway::rendezvous
