#include "keys/process_key.h"

#include <gtest/gtest.h>
#include <openssl/rand.h>

#include <algorithm>

namespace leeway::keys {
namespace {

constexpr Key kMeeting{};

// While it lives, OpenSSL's generator gives zeros. Only this old interface can replace the
// generator.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
class BrokenGenerator {
 public:
  BrokenGenerator() { EXPECT_EQ(::RAND_set_rand_method(&zeros_), 1); }
  ~BrokenGenerator() { ::RAND_set_rand_method(nullptr); }

 private:
  static int give_zeros(unsigned char* to, int count) {
    std::fill_n(to, count, 0);
    return 1;
  }
  const RAND_METHOD zeros_{nullptr, give_zeros, nullptr, nullptr, give_zeros, [] { return 1; }};
};
#pragma GCC diagnostic pop

TEST(ProcessKey, AgreesWithTheOtherSide) {
  const auto one = *ProcessKey::make();
  const auto other = *ProcessKey::make();
  EXPECT_NE(one->public_half(), other->public_half());
  const auto here = one->agree(other->public_half(), kMeeting, 0);
  const auto there = other->agree(one->public_half(), kMeeting, 0);
  ASSERT_TRUE(here.ok() && there.ok());
  EXPECT_EQ(*here, *there);
  EXPECT_NE(*here, Key{});
}

TEST(ProcessKey, AgreesWithEachProcessAboutAnotherSecret) {
  const auto one = *ProcessKey::make();
  EXPECT_NE(*one->agree((*ProcessKey::make())->public_half(), kMeeting, 0),
            *one->agree((*ProcessKey::make())->public_half(), kMeeting, 0));
}

// With a public half of small order, everyone would know the shared key.
TEST(ProcessKey, RefusesAPointOfSmallOrder) {
  const auto one = *ProcessKey::make();
  Key small{};
  EXPECT_EQ(one->agree(small, kMeeting, 0).status().code(), StatusCode::kMismatch);
  small[0] = std::byte{1};
  EXPECT_EQ(one->agree(small, kMeeting, 0).status().code(), StatusCode::kMismatch);
}

// A second agreement would number datagrams from 1 again under the same key.
TEST(ProcessKey, IsNeverUsedTwiceForOneMemberMeetingAndLane) {
  const auto one = *ProcessKey::make();
  const auto other = *ProcessKey::make();
  Key later{};
  later[0] = std::byte{1};
  EXPECT_TRUE(one->agree(other->public_half(), kMeeting, 0).ok());
  EXPECT_EQ(one->agree(other->public_half(), kMeeting, 0).status().code(), StatusCode::kInternal);
  EXPECT_TRUE(one->agree(other->public_half(), kMeeting, 1).ok());
  EXPECT_TRUE(one->agree(other->public_half(), later, 0).ok());
  EXPECT_EQ(one->agree(other->public_half(), later, 0).status().code(), StatusCode::kInternal);
}

// A cloned machine may draw its twin's numbers, and a broken generator repeats its own.
TEST(ProcessKey, DiffersAlsoWhereTheGeneratorRepeatsItself) {
  const BrokenGenerator generator;
  Key random{};
  fill_randomly(random);
  ASSERT_EQ(random, Key{});
  const auto one = *ProcessKey::make();
  const auto other = *ProcessKey::make();
  EXPECT_NE(one->public_half(), other->public_half());
}

}  // namespace
}  // namespace leeway::keys
