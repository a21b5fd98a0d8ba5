#include "keys/x25519.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace leeway::keys {
namespace {

Key key_from(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<std::byte>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return key;
}

// The vector of RFC 7748, 6.1.
TEST(X25519, AgreesAsTheSpecificationSays) {
  const Key bob = key_from("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  EXPECT_EQ(x25519_public_half(bob),
            key_from("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
  EXPECT_EQ(x25519_agree(
                bob, key_from("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")),
            key_from("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
}

TEST(X25519, AgreesWithNoPointOfSmallOrder) {
  Key one{};
  EXPECT_FALSE(x25519_agree(key_from(std::string(64, '7')), one));
  one[0] = std::byte{1};
  EXPECT_FALSE(x25519_agree(key_from(std::string(64, '7')), one));
}

}  // namespace
}  // namespace leeway::keys
