// Attackers without keys against the data of a sealed job; each test is one attack. Datagrams that
// they add must change nothing: no result, no byte that a member sends, no time. Datagrams that
// they remove or delay count as loss.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "attack/forgeries.h"

namespace leeway::attack {
namespace {

using namespace std::chrono_literals;
using Flying = SealedJob::Flying;
using seal::Refusal;

constexpr int kMembers = 3;
constexpr std::size_t kElements = 30'000;  // 25 packets a flow and more
constexpr Duration kDeadline = 60ms;

// The outcome of a job of three all-reduces: exact, lossy, exact.
struct Outcome {
  std::vector<std::vector<float>> results;
  std::uint32_t trace = 0;
  Duration took{0};
  std::uint64_t refused = 0;  // datagrams that all members refused

  // Compares everything that attacks must not change. The count `refused` is not compared, because
  // it may rise.
  friend bool operator==(const Outcome& one, const Outcome& other) {
    return one.results == other.results && one.trace == other.trace && one.took == other.took;
  }
};

using Attack = std::function<void(SealedJob&)>;

Outcome outcome_of(SealedJob& job) {
  Outcome outcome;
  const Instant began = job.now();
  for (const Delivery& delivery : {exact(), best_effort(kDeadline), exact()}) {
    Sums sums(kMembers, kElements, delivery);
    std::vector<collective::Request*> requests;
    for (Rank rank = 0; rank < kMembers; ++rank) requests.push_back(&sums.submit(job, rank));
    const bool done = job.run_until(
        [&] {
          return std::all_of(requests.begin(), requests.end(), [](auto* one) { return one->done; });
        },
        60s);
    EXPECT_TRUE(done);
    for (Rank rank = 0; rank < kMembers; ++rank) {
      EXPECT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.c_str();
      outcome.results.push_back(sums.result(rank));
    }
    job.pass(200ms);  // time for confirmations, so that nothing reads `sums` any more
  }
  outcome.took = job.now() - began;
  outcome.trace = job.trace();
  for (Rank rank = 0; rank < kMembers; ++rank) {
    for (int i = 1; i < seal::kRefusals; ++i) outcome.refused += job.sealed(rank).refused[i];
  }
  return outcome;
}

Outcome attacked(const Attack& attack) {
  SealedJob job({.size = kMembers});
  attack(job);
  return outcome_of(job);
}

Outcome quiet() {
  return attacked([](SealedJob&) {});
}

// Returns an attack that sends the datagrams of `extra` before each datagram of a member.
Attack adding(std::function<std::vector<Flying>(const Flying&)> extra) {
  return [extra = std::move(extra)](SealedJob& job) {
    job.network = [extra](const Flying& flying) {
      std::vector<Flying> all = extra(flying);
      all.push_back(flying);
      return all;
    };
  };
}

void expect_no_effect(const Attack& attack) {
  static const Outcome alone = quiet();
  const Outcome beside = attacked(attack);
  EXPECT_EQ(alone.refused, 0u);
  EXPECT_GT(beside.refused, 100u);
  EXPECT_TRUE(alone == beside) << "trace " << alone.trace << " and " << beside.trace;
}

// An attacker who knows the tag by which the victim recognises a member, but seals with wrong keys.
class WrongKeys {
 public:
  WrongKeys() { random_.seed(7); }
  Bytes seal(SealedJob& job, Rank from, Rank to, const Bytes& plain) {
    seal::PairKeys keys;
    keys.root.fill(std::byte{9});
    keys.outbound_tag = job.tag_of(from, to);
    seal::Associations own;
    own.meet(job.now(), to, keys, seal::aead_maker(seal::AeadKind::aes_128_gcm));
    const Slice slice{plain.data(), plain.size()};
    const Train train{to, plain.size(), plain.size(), {&slice, 1}};
    Bytes out(seal::Associations::sealed_bytes(train));
    own.seal(job.now(), train, out);
    // Datagram numbers: one that the receiver may expect, one long past, and one far ahead.
    const std::uint64_t numbers[] = {1 + random_() % 1000, 1, UINT64_MAX};
    seal::encode_header({.phase = static_cast<std::uint8_t>(random_() % 4),
                         .tag = job.tag_of(from, to),
                         .counter = numbers[random_() % 3]},
                        out);
    return out;
  }

 private:
  std::mt19937 random_;
};

// ---- attacks by strangers and other members ----

class ForgedDatagram : public ::testing::TestWithParam<std::size_t> {
 protected:
  // Makes each forgery once and keeps it, because one accompanies every datagram of the job.
  static const Forgery& forgery(Rank from, Rank to, std::uint32_t round) {
    static std::map<std::tuple<std::size_t, Rank, Rank, std::uint32_t>, Forgery> made;
    const auto key = std::tuple(GetParam(), from, to, round);
    const auto known = made.find(key);
    if (known != made.end()) return known->second;
    return made.emplace(key, forgeries(77, from, to, round).at(GetParam())).first->second;
  }

 public:
  static std::string name_of(const ::testing::TestParamInfo<std::size_t>& at) {
    std::string name = forgeries(77, 0, 1, 0).at(at.param).name;
    for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
    return name;
  }
};

TEST_P(ForgedDatagram, WithoutASealHasNoEffect) {
  SCOPED_TRACE(forgery(0, 1, 0).name);
  expect_no_effect(adding([](const Flying& seen) {
    return std::vector<Flying>{{seen.from, seen.to, forgery(seen.from, seen.to, 0).plain, 500us},
                               {seen.from, seen.to, forgery(seen.from, seen.to, 1).plain, 500us}};
  }));
}

TEST_P(ForgedDatagram, UnderTheRightTagAndAWrongKeyHasNoEffect) {
  SCOPED_TRACE(forgery(0, 1, 0).name);
  WrongKeys keys;
  expect_no_effect([&keys](SealedJob& job) {
    adding([&](const Flying& seen) {
      const Bytes sealed = keys.seal(job, seen.from, seen.to, forgery(seen.from, seen.to, 1).plain);
      return std::vector<Flying>{{seen.from, seen.to, sealed, 500us}};
    })(job);
  });
}

INSTANTIATE_TEST_SUITE_P(Each, ForgedDatagram,
                         ::testing::Range<std::size_t>(0, forgeries(77, 0, 1, 0).size()),
                         ForgedDatagram::name_of);

TEST(DataAttack, JunkFloodHasNoEffect) {
  std::mt19937 random(3);
  expect_no_effect(adding([&random](const Flying& seen) {
    std::vector<Flying> junk;
    for (int i = 0; i < 20; ++i) {
      Flying one{seen.from, seen.to, Bytes(random() % 700), Duration(random() % 2'000'000)};
      for (std::byte& byte : one.bytes) byte = std::byte(random());
      junk.push_back(std::move(one));
    }
    return junk;
  }));
}

// A stranger gets no answers. With a forged source address it could direct answers at somebody
// else.
TEST(DataAttack, NothingThatAStrangerSendsIsAnswered) {
  SealedJob job({.size = kMembers});
  const std::uint32_t before = job.trace();
  WrongKeys keys;
  for (const Forgery& forgery : forgeries(77, 0, 1, 0)) {
    for (int i = 0; i < 100; ++i) {
      job.inject({0, 1, forgery.plain});
      job.inject({0, 1, keys.seal(job, 0, 1, forgery.plain)});
    }
  }
  job.pass(100ms);
  EXPECT_EQ(job.trace(), before);
}

// The attacker sends a member's datagram from another member's address.
TEST(DataAttack, MembersDatagramFromAnotherMembersAddressHasNoEffect) {
  expect_no_effect(adding([](const Flying& seen) {
    const Rank other = kMembers - seen.from - seen.to;
    return std::vector<Flying>{{other, seen.to, seen.bytes, 500us}};
  }));
}

// Sends each datagram also to another member, which has other keys with the datagram's sender.
TEST(DataAttack, DatagramLedToAnotherMemberHasNoEffect) {
  expect_no_effect(adding([](const Flying& seen) {
    const Rank other = kMembers - seen.from - seen.to;
    return std::vector<Flying>{{seen.from, other, seen.bytes, 500us}};
  }));
}

// Sends each datagram back to its sender, too. The two directions have different keys.
TEST(DataAttack, DatagramThatComesBackToItsSenderHasNoEffect) {
  expect_no_effect(adding([](const Flying& seen) {
    return std::vector<Flying>{{seen.to, seen.from, seen.bytes, 500us}};
  }));
}

// ---- an attacker on the path adds datagrams ----

TEST(DataAttack, CopiesHaveNoEffect) {
  const Attack copies = [](SealedJob& job) {
    job.network = [](const Flying& flying) {
      Flying later = flying;
      later.delay += 300us;
      Flying much_later = flying;
      much_later.delay += 40ms;
      return std::vector<Flying>{flying, flying, later, much_later};
    };
  };
  expect_no_effect(copies);
}

TEST(DataAttack, ReplayOfAllThatWasEverSentHasNoEffect) {
  std::vector<Flying> recorded;
  std::size_t next = 0;
  expect_no_effect(adding([&](const Flying& seen) {
    recorded.push_back(seen);
    std::vector<Flying> replays;
    for (int i = 0; i < 8; ++i) {
      replays.push_back(recorded[next++ % recorded.size()]);
      replays.back().delay += 5ms;
    }
    return replays;
  }));
}

// An earlier run of the job has the same secret, epoch and ranks, but other process keys.
TEST(DataAttack, ReplayOfAnEarlierIncarnationHasNoEffect) {
  std::vector<Flying> recorded;
  SealedJob earlier({.size = kMembers, .incarnation = 2});
  earlier.network = [&recorded](const Flying& flying) {
    recorded.push_back(flying);
    return std::vector<Flying>{flying};
  };
  (void)outcome_of(earlier);
  ASSERT_GT(recorded.size(), 200u);
  std::size_t next = 0;
  expect_no_effect([&](SealedJob& job) {
    adding([&](const Flying& seen) {
      std::vector<Flying> replays;
      for (int i = 0; i < 4; ++i) {
        Flying old = recorded[next++ % recorded.size()];
        // Half of the replays get the new run's tags, as if the attacker had learned these.
        if (next % 2 == 0) {
          seal::Header header;
          EXPECT_EQ(seal::decode_header(old.bytes, header), seal::Refusal::none);
          header.tag = job.tag_of(seen.from, seen.to);
          seal::encode_header(header, old.bytes);
          old.from = seen.from;
          old.to = seen.to;
        }
        replays.push_back(std::move(old));
      }
      return replays;
    })(job);
  });
}

TEST(DataAttack, DamagedCopiesThatComeFirstHaveNoEffect) {
  std::mt19937 random(11);
  expect_no_effect(adding([&random](const Flying& seen) {
    std::vector<Flying> damaged;
    for (int i = 0; i < 4; ++i) {
      Flying one = seen;
      one.delay = 500us;
      one.bytes[random() % one.bytes.size()] ^= std::byte(1u << random() % 8);
      damaged.push_back(std::move(one));
    }
    return damaged;
  }));
}

// Flips each bit of the clear header in turn, in all kinds of datagrams.
TEST(DataAttack, HeaderBitsAreAllUnderTheSeal) {
  std::size_t bit = 0;
  expect_no_effect(adding([&bit](const Flying& seen) {
    Flying one = seen;
    one.delay = 500us;
    one.bytes[bit / 8 % seal::kHeaderBytes] ^= std::byte(1u << bit % 8);
    ++bit;
    return std::vector<Flying>{one};
  }));
}

TEST(DataAttack, TruncatedAndLengthenedCopiesHaveNoEffect) {
  std::mt19937 random(13);
  expect_no_effect(adding([&random](const Flying& seen) {
    Flying shorter = seen;
    shorter.delay = 500us;
    shorter.bytes.resize(random() % seen.bytes.size());
    Flying longer = seen;
    longer.delay = 500us;
    longer.bytes.resize(seen.bytes.size() + 1 + random() % 20);
    return std::vector<Flying>{shorter, longer};
  }));
}

// ---- an attacker on the path removes or delays datagrams ----

// Expects right results of exact calls, whatever is lost, and the end of the lossy call at its
// deadline.
void expect_only_loss(const Attack& attack) {
  static const Outcome alone = quiet();
  const Outcome beside = attacked(attack);
  for (const std::size_t call : {std::size_t{0}, std::size_t{2}}) {
    for (Rank rank = 0; rank < kMembers; ++rank)
      EXPECT_EQ(alone.results[call * kMembers + rank], beside.results[call * kMembers + rank]);
  }
}

TEST(DataAttack, DamageInPlaceIsLoss) {
  std::mt19937 random(17);
  expect_only_loss([&random](SealedJob& job) {
    job.network = [&random](const Flying& flying) {
      Flying one = flying;
      if (random() % 10 == 0) one.bytes[random() % one.bytes.size()] ^= std::byte{4};
      if (random() % 20 == 0) one.bytes.resize(random() % one.bytes.size());
      return std::vector<Flying>{one};
    };
  });
}

TEST(DataAttack, DelayAndReorderingAreNoMoreThanThat) {
  std::mt19937 random(19);
  expect_only_loss([&random](SealedJob& job) {
    job.network = [&random](const Flying& flying) {
      Flying one = flying;
      one.delay += Duration(random() % 8'000'000);
      return std::vector<Flying>{one};
    };
  });
}

TEST(DataAttack, ChosenLossIsLoss) {
  std::size_t count = 0;
  expect_only_loss([&count](SealedJob& job) {
    job.network = [&count](const Flying& flying) {
      // Removes every second of the short datagrams (reports, ENDs, requests), and every eighth of
      // the long ones (data).
      const bool taken = flying.bytes.size() < 200 ? count++ % 2 == 0 : count++ % 8 == 0;
      return taken ? std::vector<Flying>{} : std::vector<Flying>{flying};
    };
  });
}

}  // namespace
}  // namespace leeway::attack
