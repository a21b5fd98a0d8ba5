#include "keys/process_key.h"

#include <gtest/gtest.h>

namespace leeway::keys {
namespace {

TEST(ProcessKey, AgreesWithTheOtherSide) {
  const auto one = *ProcessKey::make();
  const auto other = *ProcessKey::make();
  EXPECT_NE(one->public_half(), other->public_half());
  const auto here = one->agree(other->public_half());
  const auto there = other->agree(one->public_half());
  ASSERT_TRUE(here.ok() && there.ok());
  EXPECT_EQ(*here, *there);
  EXPECT_NE(*here, Key{});
}

TEST(ProcessKey, AgreesWithEachProcessAboutAnotherSecret) {
  const auto one = *ProcessKey::make();
  EXPECT_NE(*one->agree((*ProcessKey::make())->public_half()),
            *one->agree((*ProcessKey::make())->public_half()));
}

// Such a half would make the result known to everyone.
TEST(ProcessKey, RefusesAPointOfSmallOrder) {
  const auto one = *ProcessKey::make();
  Key small{};
  EXPECT_EQ(one->agree(small).status().code(), StatusCode::kMismatch);
  small[0] = std::byte{1};
  EXPECT_EQ(one->agree(small).status().code(), StatusCode::kMismatch);
}

}  // namespace
}  // namespace leeway::keys
