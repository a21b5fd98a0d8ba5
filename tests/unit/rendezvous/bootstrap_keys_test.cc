// Tests ranks with secrets that meet: what they know of each other's keys, and who is refused. They
// meet in a store, so that no connection refuses anyone earlier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leeway/rendezvous.h"
#include "rendezvous/meeting.h"
#include "unit/rendezvous/loopback_ranks.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Makes ranks meet. Rank i has a secret file with a line for each digit of secrets[i], or no secret
// if that string is empty.
std::vector<Result<Group>> meet(const std::vector<std::string>& secrets) {
  const auto store = std::make_shared<InprocRendezvous>();
  std::vector<Joining> joining;
  for (std::size_t rank = 0; rank < secrets.size(); ++rank) {
    LocalConfiguration local =
        configuration(static_cast<int>(rank), static_cast<int>(secrets.size()), 1);
    local.store = store;
    if (!secrets[rank].empty()) local.identity = identity_with(secrets[rank]);
    joining.push_back(join(local));
  }
  std::vector<Result<Group>> groups;
  for (Joining& one : joining) groups.push_back(one.get());
  return groups;
}

TEST(JoinGroupWithASecret, GivesEachPairItsKeys) {
  const auto groups = meet({"1", "1", "1"});
  for (const auto& group : groups) {
    ASSERT_TRUE(group.ok()) << group.status().c_str();
    ASSERT_NE(group->keys, nullptr);
    EXPECT_EQ(group->keys->meeting, groups[0]->keys->meeting);
    EXPECT_EQ(group->keys->members.size(), 3u);
  }
  EXPECT_NE(groups[0]->keys->meeting, keys::Key{});
  for (std::size_t one = 0; one < 3; ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      const keys::JoinedKeys& here = *groups[one]->keys;
      const keys::JoinedKeys& there = *groups[other]->keys;
      EXPECT_EQ(here.members[other].pair, there.members[one].pair);
      EXPECT_EQ(here.members[one].tag, there.members[one].tag);
      EXPECT_EQ(*here.own->key->agree(here.members[other].public_key, here.meeting, 0),
                *there.own->key->agree(there.members[one].public_key, there.meeting, 0));
    }
  }
}

TEST(JoinGroupWithASecret, MeetsWhileTheSecretIsReplaced) {
  for (const auto& secrets : {std::vector<std::string>{"12", "21", "12"},
                              {"1", "21", "1"},       // rank 1 has the new one before rank 0
                              {"21", "1", "21"},      // and after it
                              {"2", "321", "12"}}) {  // the last of three is common to all
    for (const auto& group : meet(secrets)) EXPECT_TRUE(group.ok()) << group.status().c_str();
  }
}

// Over TCP a rank's first message can name only one of its secrets. Ranks must meet nevertheless.
TEST(JoinGroupWithASecret, MeetsOverTcpInWhateverOrderTheSecretIsReplaced) {
  for (const auto& secrets :
       {std::vector<std::string>{"1", "21", "1"}, {"21", "1", "21"}, {"2", "432", "2"}}) {
    const std::uint16_t port = free_port();
    std::vector<Joining> joining;
    for (std::size_t rank = 0; rank < secrets.size(); ++rank) {
      LocalConfiguration local = configuration(static_cast<int>(rank), 3, port);
      local.identity = identity_with(secrets[rank]);
      joining.push_back(join(local));
    }
    for (Joining& one : joining) EXPECT_EQ(text(one.get()), "");
  }
}

TEST(JoinGroupWithASecret, WithoutAnyHasNoKeys) {
  const auto groups = meet({"", ""});
  for (const auto& group : groups) {
    ASSERT_TRUE(group.ok()) << group.status().c_str();
    EXPECT_EQ(group->keys, nullptr);
    EXPECT_FALSE(group->identities.has_value());
  }
}

TEST(JoinGroupWithASecret, RefusesARankWithoutOne) {
  for (const auto& secrets : {std::vector<std::string>{"1", ""}, {"", "1"}}) {
    for (const auto& group : meet(secrets)) {
      EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
      EXPECT_THAT(text(group), AllOf(HasSubstr("LEEWAY_SECRET_FILE"), HasSubstr("none")));
    }
  }
}

TEST(JoinGroupWithASecret, RefusesARankWithAnother) {
  for (const auto& group : meet({"1", "2"})) {
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(text(group), AllOf(HasSubstr("rank 1 at"), HasSubstr("share no secret")));
  }
}

TEST(JoinGroupWithASecret, RefusesRanksOfWhichNoSecretIsKnownToAll) {
  for (const auto& group : meet({"12", "1", "2"})) {
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(text(group), HasSubstr("no secret is known to all"));
  }
}

// Others may write to the store, so a rank must refuse a table in it that lacks the rank's own key.
TEST(JoinGroupWithASecret, TakesNoTableWithoutItsOwnKey) {
  const auto store = std::make_shared<InprocRendezvous>();
  LocalConfiguration local = configuration(1, 2, 1);
  local.store = store;
  local.identity = identity_with("1");
  Joining rank = join(local);
  LocalConfiguration liar = configuration(0, 2, 1);
  liar.store = store;
  liar.identity = identity_with("1");
  const MeetingKeys keys(liar);
  ASSERT_TRUE(store->put(keys.root(), value_of(invitation_of(liar, 5))).ok());
  const auto hello = take_hello(*store->get(keys.hello(5, 1), 10s), keys.hello(5, 1), liar, 1);
  ASSERT_TRUE(hello.ok()) << hello.status().c_str();
  auto group = make_group(liar, {&*hello, 1}, 7);
  ASSERT_TRUE(group.ok());
  group->identities->members[1].public_key = liar.identity->told.public_key;
  ASSERT_TRUE(
      store->put(keys.outcome(5), proved_value(welcome_of(*group), liar, keys.outcome(5))).ok());
  const auto taken = rank.get();
  EXPECT_EQ(taken.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(text(taken), HasSubstr("does not have rank 1's key"));
}

}  // namespace
}  // namespace leeway::rendezvous
