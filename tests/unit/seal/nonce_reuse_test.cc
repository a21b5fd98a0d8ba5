// Tries all states of a small model, in which one process gets two tables in turn. A member, or the
// keeper of the store, may have written any tables. No key may seal the same number twice, or both
// seal and open (WIRE 8.8).
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "keys/joined_keys.h"
#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

class OpensAll final : public Cipher {
 public:
  void set_key(const CipherKey&, const NonceVector&) override {}
  void seal(std::uint64_t, std::span<const Slice>, MutableByteSpan) override {}
  bool open(std::uint64_t, MutableByteSpan) override { return true; }
};

keys::Key key_of(unsigned number) {
  keys::Key key{};
  key.fill(static_cast<std::byte>(number));
  return key;
}

constexpr unsigned kOwn = 1;

// What a table says to rank 0 about ranks 1 and 2.
struct Table {
  unsigned keys[2];       // each in kOwn .. 3
  unsigned processes[2];  // process numbers
  unsigned meeting;
};

std::vector<Table> all_tables() {
  std::vector<Table> tables;
  for (unsigned code = 0; code < 3 * 3 * 2 * 2 * 2; ++code) {
    tables.push_back({{kOwn + code % 3, kOwn + code / 3 % 3},
                      {7 + code / 9 % 2, 7 + code / 18 % 2},
                      code / 36 % 2});
  }
  return tables;
}

// A model of communicator/udp_endpoint.cc and communicator/sealing.cc, with the real checks of
// src/security/keys.
class Process {
 public:
  void hear(const Table& table) {
    std::vector<keys::Identity> members = {{key_of(kOwn), 0, {}}};
    for (const unsigned key : table.keys) members.push_back({key_of(key), 0, {}});
    if (!keys::check_distinct(members).ok()) return;
    ++taken_;
    const keys::Key meeting = key_of(table.meeting);
    for (std::size_t rank = 1; rank < members.size(); ++rank) {
      const keys::Key& peer = members[rank].public_key;
      const Rank slot = slots_.emplace(peer, static_cast<Rank>(slots_.size())).first->second;
      if (!seals_.needs_keys(slot, meeting)) continue;
      const PairKeys pair = derive_pair(key_of(40 + table.keys[rank - 1]), {}, meeting,
                                        {key_of(kOwn), 0}, {peer, 0}, 0, 0);
      seals_.meet(
          Instant{0}, slot, pair, [](bool) { return std::make_unique<OpensAll>(); }, meeting);
      EXPECT_TRUE(sealing_.insert(cipher_key(pair, true)).second);
      opening_.insert(cipher_key(pair, false));
      inbound_tags_[slot] = pair.inbound_tag;
    }
  }
  void open_one_of_each() {
    for (const auto& [slot, tag] : inbound_tags_) {
      Bytes datagram(kOverheadBytes + 1);
      encode_header({.tag = tag, .counter = 1}, datagram);
      (void)seals_.open(Instant{0}, slot, datagram);
    }
  }
  bool reflects() const {
    return std::any_of(sealing_.begin(), sealing_.end(),
                       [this](const keys::Key& key) { return opening_.contains(key); });
  }
  int taken() const { return taken_; }

 private:
  std::map<keys::Key, Rank> slots_;
  Associations seals_;
  std::set<CipherKey> sealing_;
  std::set<CipherKey> opening_;
  std::map<Rank, std::uint32_t> inbound_tags_;
  int taken_ = 0;
};

TEST(NonceReuse, NoTwoTablesLeadToOneKeyTwice) {
  const auto tables = all_tables();
  int taken = 0;
  for (const Table& first : tables) {
    for (const Table& second : tables) {
      for (const bool heard : {false, true}) {
        Process process;
        process.hear(first);
        if (heard) process.open_one_of_each();
        process.hear(second);
        process.hear(first);
        ASSERT_FALSE(process.reflects());
        taken += process.taken();
      }
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace leeway::seal
