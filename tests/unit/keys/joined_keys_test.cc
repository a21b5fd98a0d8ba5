#include "keys/joined_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const OwnIdentity> identity(const std::string& secret_lines) {
  return *OwnIdentity::make(std::make_shared<Secrets>(*Secrets::parse(secret_lines, "test")));
}

TEST(OwnIdentity, IsNewEachTime) {
  const auto one = identity(line_of('1'));
  const auto other = identity(line_of('1'));
  EXPECT_NE(one->told.public_key, other->told.public_key);
  EXPECT_EQ(one->told.public_key, one->key->public_half());
  EXPECT_EQ(one->told.secrets, other->told.secrets);
}

TEST(JoinKeys, GivesBothSidesOfAPairOneSecret) {
  const auto one = identity(line_of('1'));
  const auto other = identity(line_of('1'));
  const std::vector<Identity> members = {one->told, other->told};
  const auto here = *join_keys(one, Key{}, members);
  const auto there = *join_keys(other, Key{}, members);
  ASSERT_EQ(here->members.size(), 2u);
  EXPECT_EQ(here->members[1].pair, there->members[0].pair);
  EXPECT_EQ(here->members[1].public_key, other->told.public_key);
  EXPECT_EQ(here->members[1].tag, other->told.tag);
}

// While a secret is replaced, the new one is first in some ranks' files, second in others, and
// missing in the rest.
TEST(JoinKeys, FindsTheSecretThatAPairShares) {
  const auto fresh = identity(line_of('2') + line_of('1'));
  const auto stale = identity(line_of('1'));
  const auto prepared = identity(line_of('1') + line_of('2'));
  const std::vector<Identity> members = {fresh->told, stale->told, prepared->told};
  const auto of_fresh = *join_keys(fresh, Key{}, members);
  const auto of_stale = *join_keys(stale, Key{}, members);
  const auto of_prepared = *join_keys(prepared, Key{}, members);
  EXPECT_EQ(of_fresh->members[1].pair, of_stale->members[0].pair);
  EXPECT_EQ(of_fresh->members[2].pair, of_prepared->members[0].pair);
  EXPECT_EQ(of_stale->members[2].pair, of_prepared->members[1].pair);
}

// Two processes may meet in several groups at once, in different orders. They must find the same
// keys.
TEST(JoinKeys, GroupsWithSecretsForMeetingsOnlyFindOnePairOfKeys) {
  const auto for_meetings = [](char digit) {
    auto secrets = *Secrets::parse(line_of(digit), "test");
    secrets.use_for_meetings_only();
    return std::make_shared<const Secrets>(std::move(secrets));
  };
  const auto first = for_meetings('1');
  const auto second = for_meetings('2');
  const auto one = *OwnIdentity::make(first);
  const auto other = *OwnIdentity::make(first);
  const auto one_again = one->with(second);
  EXPECT_EQ(one_again->told.public_key, one->told.public_key);
  EXPECT_EQ(one_again->told.tag, one->told.tag);
  EXPECT_EQ(one_again->told.secrets, second->ids());
  const auto here = *join_keys(one, Key{}, {one->told, other->told});
  const auto again = *join_keys(one_again, Key{}, {one_again->told, other->with(second)->told});
  EXPECT_EQ(here->members[1].pair, again->members[1].pair);
  EXPECT_FALSE(join_keys(one, Key{}, {one->told, other->with(second)->told}).ok());
}

// If another rank carried a known key, this process would use the same nonces twice.
TEST(JoinKeys, RefusesATableInWhichTwoRanksHaveOneKey) {
  const auto one = identity(line_of('1'));
  const auto other = identity(line_of('1'));
  auto near = other->told;  // the keys have the same first bytes, so both would mean the same relay
  near.public_key.back() = ~near.public_key.back();
  for (const Identity& copy : {other->told, one->told, near}) {
    const auto joined = join_keys(one, Key{}, {one->told, other->told, copy});
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(joined.status().c_str(), HasSubstr("rank 2 carries the public key of rank"));
  }
}

TEST(JoinKeys, RefusesAMemberWithoutASharedSecret) {
  const auto one = identity(line_of('1'));
  const auto other = identity(line_of('2'));
  const auto joined = join_keys(one, Key{}, {one->told, other->told});
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(joined.status().c_str(), HasSubstr("rank 1 shares no secret"));
}

}  // namespace
}  // namespace leeway::keys
