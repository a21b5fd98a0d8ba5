#include "base/hex_text.h"

#include <gtest/gtest.h>

#include <array>

namespace leeway {
namespace {

TEST(HexText, HasTwoDigitsForEachByte) {
  EXPECT_EQ(hex_text(std::array{std::byte{0x00}, std::byte{0x7F}, std::byte{0xA9}}), "007fa9");
  EXPECT_EQ(hex_text(std::span<const std::byte>()), "");
}

TEST(HexText, HasSixteenDigitsForANumber) {
  EXPECT_EQ(hex_text(std::uint64_t{0}), "0000000000000000");
  EXPECT_EQ(hex_text(std::uint64_t{0xFEDCBA9876543210}), "fedcba9876543210");
}

}  // namespace
}  // namespace leeway
