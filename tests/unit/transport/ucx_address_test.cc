#include "transport/ucx/address.h"

#include <gtest/gtest.h>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kMax = 1000;

TEST(UcxAddress, ComesBackAsItWasWrapped) {
  const Bytes address = pattern(215);
  const Bytes wrapped = wrap_ucx_address(address);
  const auto back = unwrap_ucx_address(wrapped, 3, kMax);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(bytes_of(*back), address);
}

TEST(UcxAddress, EveryDamagedBitIsNoticed) {
  const Bytes wrapped = wrap_ucx_address(pattern(40));
  for (std::size_t bit = 0; bit < 8 * wrapped.size(); ++bit) {
    if (bit / 8 == 3) continue;  // reserved
    Bytes damaged = wrapped;
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(unwrap_ucx_address(damaged, 3, kMax).ok()) << bit;
  }
}

TEST(UcxAddress, TooShortAndTooLongOnesAreRefused) {
  const Bytes wrapped = wrap_ucx_address(pattern(40));
  for (std::size_t bytes = 0; bytes < wrapped.size(); ++bytes) {
    EXPECT_FALSE(unwrap_ucx_address(ByteSpan(wrapped).first(bytes), 3, kMax).ok()) << bytes;
  }
  EXPECT_FALSE(unwrap_ucx_address(wrapped, 3, wrapped.size() - 1).ok());
  EXPECT_TRUE(unwrap_ucx_address(wrapped, 3, wrapped.size()).ok());
}

TEST(UcxAddress, AnotherVersionOfUcxIsAMismatchThatNamesBoth) {
  Bytes wrapped = wrap_ucx_address(pattern(40));
  wrapped[1] = std::byte{9};
  wrapped[2] = std::byte{77};
  const Status status = unwrap_ucx_address(wrapped, 3, kMax).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_NE(status.text().find("rank 3 has UCX 9.77"), std::string_view::npos) << status.c_str();
}

TEST(UcxGroupDigest, DependsOnEveryAddressAndTheirOrder) {
  const std::vector<std::vector<std::byte>> group = {pattern(200, 1), pattern(200, 2),
                                                     pattern(180, 3)};
  auto swapped = group;
  std::swap(swapped[0], swapped[1]);
  auto changed = group;
  changed[2].back() ^= std::byte{1};
  EXPECT_EQ(ucx_group_digest(group), ucx_group_digest(group));
  EXPECT_NE(ucx_group_digest(group), ucx_group_digest(swapped));
  EXPECT_NE(ucx_group_digest(group), ucx_group_digest(changed));
}

}  // namespace
}  // namespace leeway::transport
