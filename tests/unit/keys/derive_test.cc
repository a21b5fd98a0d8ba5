#include "keys/derive.h"

#include <gtest/gtest.h>

#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

// The pseudo-random key of test case A.1 in RFC 5869.
TEST(Extract, IsHkdfOfRfc5869) {
  const auto input = from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
  const auto salt = from_hex("000102030405060708090a0b0c");
  EXPECT_EQ(copy_of(extract(salt, input)),
            from_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
}

// Test case A.3 in RFC 5869, which has no salt.
TEST(Extract, TakesZerosForNoSalt) {
  const auto input = from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
  const Key key = extract({}, input);
  EXPECT_EQ(copy_of(key),
            from_hex("19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04"));
  std::vector<std::byte> out(42);
  expand(key, "", out);
  EXPECT_EQ(out, from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                          "9d201395faa4b61a96c8"));
}

TEST(Expand, IsHkdfOfRfc5869) {
  const auto input = from_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
  const Key key = extract(from_hex("000102030405060708090a0b0c"), input);
  std::vector<std::byte> out(42);
  expand(key, std::string_view("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9", 10), out);
  EXPECT_EQ(out, from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                          "34007208d5b887185865"));
}

TEST(Expand, GivesOtherKeysForOtherLabels) {
  const Key key = extract({}, from_hex("00"));
  EXPECT_NE(expand(key, "pair"), expand(key, "join"));
}

TEST(FillRandomly, DrawsOtherBytesEachTime) {
  Key one{};
  Key other{};
  fill_randomly(one);
  fill_randomly(other);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace leeway::keys
