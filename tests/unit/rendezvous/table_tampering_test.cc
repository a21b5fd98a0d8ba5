// Changes every message of a meeting of three ranks with a secret, as two attackers could: the
// store's keeper, who has no secret, and a member, who can prove whatever he writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "rendezvous/meeting.h"
#include "unit/rendezvous/loopback_ranks.h"

namespace leeway::rendezvous {
namespace {

using ::testing::HasSubstr;

std::string text_of(const Status& status) {
  return std::string(status.text());
}

constexpr int kChanges = 10'000;
constexpr std::uint64_t kMeeting = 5;

class TableTampering : public ::testing::Test {
 protected:
  using Value = std::vector<std::byte>;

  TableTampering() {
    for (int rank = 0; rank < 3; ++rank) {
      ranks_.push_back(configuration(rank, 3, 1));
      ranks_.back().data_address = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
      ranks_.back().identity = identity_with("1");
    }
    for (Rank rank = 1; rank < 3; ++rank) hellos_.push_back(hello(rank));
    group_ = *make_group(ranks_[0], hellos_, 77);
  }

  control::Hello hello(Rank rank) const { return hello_of(ranks_[rank], 40u + rank, 10s); }
  std::string hello_key(Rank rank) const { return keys().hello(kMeeting, rank); }
  std::string table_key() const { return keys().outcome(kMeeting); }
  MeetingKeys keys() const { return MeetingKeys(ranks_[0]); }
  Value hello_value(Rank rank) const {
    return proved_value(hello(rank), ranks_[rank], hello_key(rank));
  }
  Value table() const { return proved_value(welcome_of(group_), ranks_[0], table_key()); }

  // Returns the status of a rank that reads this table.
  Status taken(ByteSpan value, Rank rank, std::string key = {}) const {
    const auto welcome = parse_welcome(value, 3);
    if (!welcome) return Status::error(StatusCode::kMismatch, "no table");
    if (welcome->has_rejected()) return status_of(welcome->rejected());
    auto group = take_group(*welcome, value, key.empty() ? table_key() : key, ranks_[rank]);
    if (!group.ok()) return group.status();
    return take_keys(ranks_[rank], *group);
  }
  Value changed(Value value) {
    const auto at = [&] { return random_() % value.size(); };
    switch (random_() % 5) {
      case 0:
        value[at()] ^= std::byte{1} << random_() % 8;
        break;
      case 1:
        value[at()] = static_cast<std::byte>(static_cast<unsigned>(value[0]) + 1 + random_() % 255);
        break;
      case 2:
        value.erase(value.begin() + static_cast<std::ptrdiff_t>(at()));
        break;
      case 3:
        value.insert(value.begin() + static_cast<std::ptrdiff_t>(at()),
                     static_cast<std::byte>(random_()));
        break;
      default:
        std::rotate(value.begin() + static_cast<std::ptrdiff_t>(at() / 2),
                    value.begin() + static_cast<std::ptrdiff_t>(value.size() / 2), value.end());
    }
    return value;
  }

  std::mt19937 random_{12};
  std::vector<LocalConfiguration> ranks_;
  std::vector<control::Hello> hellos_;
  Group group_;
};

TEST_F(TableTampering, NothingIsRefusedWhileNobodyTampers) {
  for (Rank rank = 1; rank < 3; ++rank) {
    EXPECT_TRUE(take_hello(hello_value(rank), hello_key(rank), ranks_[0], rank).ok());
    EXPECT_TRUE(taken(table(), rank).ok()) << taken(table(), rank).c_str();
  }
}

TEST_F(TableTampering, OfTheKeepersChangesNoneIsAccepted) {
  const Value true_hello = hello_value(1);
  const Value true_table = table();
  for (int i = 0; i < kChanges; ++i) {
    const Value bad_hello = changed(true_hello);
    EXPECT_TRUE(bad_hello == true_hello || !take_hello(bad_hello, hello_key(1), ranks_[0], 1).ok())
        << i;
    const Value bad_table = changed(true_table);
    EXPECT_TRUE(bad_table == true_table || !taken(bad_table, 1 + i % 2).ok()) << i;
  }
}

TEST_F(TableTampering, WhatIsMovedToAnotherPlaceIsNotAccepted) {
  const auto moved = take_hello(hello_value(1), keys().hello(6, 1), ranks_[0], 1);
  EXPECT_THAT(text_of(moved.status()), HasSubstr("was not written by a holder of the secret"));
  EXPECT_FALSE(take_hello(hello_value(1), hello_key(2), ranks_[0], 2).ok());
  EXPECT_THAT(text_of(taken(table(), 1, keys().outcome(6))),
              HasSubstr("was not written by a holder of the secret"));
}

// Rank 0 gives one rank the key of another, with a valid proof, since it has the secret.
TEST_F(TableTampering, OfAMembersCopiedKeysNoneIsAccepted) {
  for (int i = 0; i < kChanges; ++i) {
    Group bad = group_;
    auto& members = bad.identities->members;
    const std::size_t to = random_() % 3;
    const std::size_t from = (to + 1 + random_() % 2) % 3;
    if (random_() % 2 == 0) {
      members[to].public_key = members[from].public_key;
    } else {
      std::swap(members[to].public_key, members[from].public_key);
    }
    bad.processes[to] = random_();
    bad.datagrams.members[to].port = static_cast<std::uint16_t>(1 + random_() % 65535);
    if (random_() % 2 == 0) members[to].tag = static_cast<std::uint32_t>(random_());
    const Value value = proved_value(welcome_of(bad), ranks_[0], table_key());
    // The rank that the change concerns must refuse the table. If two keys are equal, every rank
    // must.
    const bool is_copy = members[to].public_key == members[from].public_key;
    const auto victim = static_cast<Rank>(to == 0 ? from : to);
    const Rank other = 3 - victim;
    EXPECT_FALSE(taken(value, victim).ok()) << i;
    if (is_copy) {
      EXPECT_FALSE(taken(value, other).ok()) << i;
    }
  }
}

TEST_F(TableTampering, TheErrorNamesBothRanksOfACopiedKey) {
  group_.identities->members[2].public_key = group_.identities->members[0].public_key;
  EXPECT_THAT(text_of(taken(table(), 1)), HasSubstr("rank 2 carries the public key of rank 0"));
  hellos_[1].mutable_identity()->set_public_key(hellos_[0].identity().public_key());
  EXPECT_THAT(text_of(make_group(ranks_[0], hellos_, 77).status()),
              HasSubstr("rank 2 carries the public key of rank 1"));
}

// A rank with another table of the same meeting must not be able to open datagrams.
TEST_F(TableTampering, RanksWithDifferentTablesHaveDifferentKeys) {
  Group other = group_;
  other.datagrams.members[2].port = 9;
  bind_to_table(group_, table(), table_key());
  bind_to_table(other, proved_value(welcome_of(other), ranks_[0], table_key()), table_key());
  EXPECT_NE(group_.identities->meeting, other.identities->meeting);
}

}  // namespace
}  // namespace leeway::rendezvous
