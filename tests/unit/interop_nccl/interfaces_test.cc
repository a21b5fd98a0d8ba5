#include "interop/nccl/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::nccl {
namespace {

using testing::ElementsAre;

UniqueId::Address v4(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
}
UniqueId::Address v6(std::uint8_t last) {
  return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

const std::vector<LocalAddress> kHost = {{"lo", v4(1), true},
                                         {"docker0", v4(2), false},
                                         {"eth0", v4(3), false},
                                         {"eth0", v6(3), false},
                                         {"ib0", v4(4), false}};

std::vector<UniqueId::Address> choose(const std::string& interfaces,
                                      Settings::Family family = Settings::Family::any) {
  Settings settings;
  settings.interfaces = interfaces;
  settings.family = family;
  return addresses_of(nccl::choose(kHost, v4(4), settings));
}

TEST(NcclInterfaces, NamesMatchAsInNccl) {
  EXPECT_TRUE(interface_matches("", "eth0"));
  EXPECT_TRUE(interface_matches("ib,eth", "eth0"));
  EXPECT_FALSE(interface_matches("=eth", "eth0"));
  EXPECT_TRUE(interface_matches("=ib0,eth0", "eth0"));
  EXPECT_FALSE(interface_matches("^eth", "eth0"));
  EXPECT_TRUE(interface_matches("^docker,lo", "eth0"));
  EXPECT_TRUE(interface_matches("^=eth", "eth0"));
}

TEST(NcclInterfaces, TheWayOutIsFirstAndBridgesAreLast) {
  EXPECT_THAT(choose(""), ElementsAre(v4(4), v4(3), v6(3)));
}

TEST(NcclInterfaces, WhatIsAskedForIsTaken) {
  EXPECT_THAT(choose("lo"), ElementsAre(v4(1)));
  EXPECT_THAT(choose("docker"), ElementsAre(v4(2)));
  EXPECT_THAT(choose("", Settings::Family::v6), ElementsAre(v6(3)));
  EXPECT_THAT(choose("wlan"), ElementsAre());
}

TEST(NcclInterfaces, AHostWithLoopbackOnlyHasThat) {
  EXPECT_THAT(addresses_of(nccl::choose({{"lo", v4(1), true}}, v4(9), Settings())),
              ElementsAre(v4(1)));
}

TEST(NcclInterfaces, NoMoreThanAnIdHolds) {
  std::vector<LocalAddress> many;
  for (std::uint8_t i = 0; i < 9; ++i) many.push_back({"eth0", v4(i), false});
  const auto kept = addresses_of(nccl::choose(many, v4(8), Settings()));
  EXPECT_EQ(kept.size(), UniqueId::kAddressesMax);
  EXPECT_EQ(kept.front(), v4(8));
}

}  // namespace
}  // namespace leeway::nccl
