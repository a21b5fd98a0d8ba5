#include "keys/table_proof.h"

#include <gtest/gtest.h>

#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

Secrets secrets(const std::string& lines) {
  return *Secrets::parse(lines, "test");
}

std::vector<std::byte> message() {
  return std::vector<std::byte>(40, std::byte{7});
}

TEST(TableProof, HoldersOfOneSecretProveToEachOther) {
  const Secrets fresh = secrets(line_of('2') + line_of('1'));
  const Secrets stale = secrets(line_of('1'));
  EXPECT_TRUE(is_proved(stale, fresh.ids(), "p", message(), prove(fresh, "p", message())));
  EXPECT_TRUE(is_proved(fresh, stale.ids(), "p", message(), prove(stale, "p", message())));
}

TEST(TableProof, ProvesNothingElsewhereAndOfNothingElse) {
  const Secrets own = secrets(line_of('1'));
  const auto proof = prove(own, "p", message());
  EXPECT_FALSE(is_proved(own, own.ids(), "q", message(), proof));
  for (std::size_t bit = 0; bit < 8 * message().size(); ++bit) {
    auto changed = message();
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(is_proved(own, own.ids(), "p", changed, proof));
  }
  for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
    auto changed = proof;
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(is_proved(own, own.ids(), "p", message(), changed));
  }
  EXPECT_FALSE(is_proved(own, own.ids(), "p", message(), {}));
}

TEST(TableProof, IsRefusedOfWhoSharesNoSecret) {
  const Secrets own = secrets(line_of('1'));
  const Secrets other = secrets(line_of('2'));
  const auto proof = prove(other, "p", message());
  EXPECT_FALSE(is_proved(own, other.ids(), "p", message(), proof));
  EXPECT_FALSE(is_proved(own, own.ids(), "p", message(), proof));
}

}  // namespace
}  // namespace leeway::keys
