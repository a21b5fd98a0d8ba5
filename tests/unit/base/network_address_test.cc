#include "base/network_address.h"

#include <gtest/gtest.h>

namespace leeway {
namespace {

TEST(NetworkAddressText, IsWrittenAsPeopleDo) {
  const NetworkAddress v4{.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 7},
                          .port = 4000};
  EXPECT_EQ(to_text(v4), "10.0.0.7:4000");
  const NetworkAddress v6{.ip = {0xFD, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                          .port = 65535};
  EXPECT_EQ(to_text(v6), "[fd50::1]:65535");
}

}  // namespace
}  // namespace leeway
