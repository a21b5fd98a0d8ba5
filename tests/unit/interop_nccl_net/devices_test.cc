#include "interop/nccl_net/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "interop/nccl_net/connection.h"

namespace leeway::nccl_net {
namespace {

namespace fs = std::filesystem;
using nccl::LocalAddress;

nccl::UniqueId::Address address(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
}

// A fake /sys with one card of 100 Gbit/s and one interface without a card.
class NcclNetDevices : public testing::Test {
 protected:
  NcclNetDevices() {
    fs::create_directories(sys_ / "devices/pci0/0000:01:00.0");
    fs::create_directories(sys_ / "class/net/eth0");
    fs::create_directories(sys_ / "class/net/wg0");
    fs::create_directory_symlink(sys_ / "devices/pci0/0000:01:00.0",
                                 sys_ / "class/net/eth0/device");
    std::ofstream(sys_ / "class/net/eth0/speed") << "100000\n";
    std::ofstream(sys_ / "class/net/wg0/speed") << "-1\n";
  }
  ~NcclNetDevices() override { fs::remove_all(sys_); }

  std::vector<Device> devices(const Options& options = {}) const {
    return devices_of(addresses_, options, sys_.string());
  }

  const fs::path sys_ = fs::path(testing::TempDir()) / "nccl_net_devices_test";
  const std::vector<LocalAddress> addresses_{
      {"eth0", address(1), false}, {"wg0", address(2), false}, {"eth0", address(3), false}};
};

TEST_F(NcclNetDevices, AreInterfacesWithTheirAddresses) {
  const auto found = devices();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "eth0");
  EXPECT_THAT(found[0].addresses, testing::ElementsAre(address(1), address(3)));
  EXPECT_EQ(found[0].speed_mbps, 100'000);
  EXPECT_EQ(found[0].pci_path, fs::canonical(sys_ / "devices/pci0/0000:01:00.0").string());
}

TEST_F(NcclNetDevices, WithoutACardHaveNoPathAndNcclsDefaultSpeed) {
  const auto found = devices();
  EXPECT_EQ(found[1].pci_path, "");
  EXPECT_EQ(found[1].speed_mbps, 10'000);
  EXPECT_EQ(properties_of(found[1], 1).pci_path, nullptr);
}

TEST_F(NcclNetDevices, AreNoFasterThanTheRateThatWasSet) {
  Options options;
  options.congestion = CongestionControl::fixed;
  options.rate_bits_per_second = 2'000'000'000;
  EXPECT_EQ(devices(options)[0].speed_mbps, 2000);
  options.rate_bits_per_second = 1;
  EXPECT_EQ(devices(options)[0].speed_mbps, 1);
  options.rate_bits_per_second = std::uint64_t{1} << 60;
  EXPECT_EQ(devices(options)[0].speed_mbps, 100'000);
}

TEST_F(NcclNetDevices, TellNcclWhatTheyAre) {
  const auto found = devices();
  const auto properties = properties_of(found[0], 0);
  EXPECT_STREQ(properties.name, "eth0");
  EXPECT_EQ(properties.message_bytes_max, kMessageBytesMax);
  EXPECT_EQ(properties.rail, -1);
  EXPECT_EQ(properties.plane, -1);
  EXPECT_EQ(properties.force_flush, 0);
}

TEST(NcclNetDevice, OfABoundAddressIsThatAddressesInterface) {
  Options options;
  options.bind_address = "127.0.0.1";
  const auto found = find_devices({}, options);
  ASSERT_TRUE(found.ok()) << found.status().c_str();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, "lo");
  options.bind_address = "203.0.113.9";  // nobody's
  EXPECT_THAT(find_devices({}, options).status().c_str(), testing::HasSubstr("203.0.113.9"));
}

}  // namespace
}  // namespace leeway::nccl_net
