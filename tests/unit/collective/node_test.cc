// Tests many communicators of a process over shared paths, in virtual time.
#include "collective/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "unit/collective/node_processes.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(Node, CommunicatorsOfDifferentRanksRunSideBySide) {
  Processes processes(4);
  const std::vector<Rank> low = {0, 1, 2};
  const std::vector<Rank> high = {3, 2, 1};
  const auto a = processes.join(7, low);
  const auto b = processes.join(9, high);
  std::vector<std::vector<float>> of_a(3, std::vector<float>(20'000, 1.0f));
  std::vector<std::vector<float>> of_b(3, std::vector<float>(20'000, 2.0f));
  std::vector<const Request*> requests;
  for (std::size_t i = 0; i < 3; ++i) {
    requests.push_back(&processes.all_reduce(low[i], *a[i], of_a[i]));
    requests.push_back(&processes.all_reduce(high[i], *b[i], of_b[i]));
  }
  ASSERT_TRUE(processes.run_until([&] {
    return std::all_of(requests.begin(), requests.end(), [](auto* r) { return r->done; });
  }));
  for (const Request* request : requests) EXPECT_TRUE(request->status.ok());
  EXPECT_THAT(of_a, Each(Each(3.0f)));
  EXPECT_THAT(of_b, Each(Each(6.0f)));
}

TEST(Node, CommunicatorsShareTheWindowOfAPath) {
  Processes processes(2);
  std::vector<std::vector<Member*>> groups;
  for (std::uint32_t epoch = 1; epoch <= 8; ++epoch)
    groups.push_back(processes.join(epoch, {0, 1}));
  std::uint32_t most = 0;
  processes.observer = [&](Rank from, Rank to, ByteSpan datagram) {
    wire::Prefix prefix;
    ASSERT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    if (prefix.type == wire::PacketType::data)
      most = std::max(most, processes[from].path(to).in_flight());
  };
  std::deque<std::vector<float>> data;
  std::vector<const Request*> requests;
  for (const auto& members : groups) {
    for (Rank slot = 0; slot < 2; ++slot) {
      data.emplace_back(30'000, 1.0f);
      requests.push_back(&processes.all_reduce(slot, *members[slot], data.back()));
    }
  }
  ASSERT_TRUE(processes.run_until([&] {
    return std::all_of(requests.begin(), requests.end(), [](auto* r) { return r->done; });
  }));
  EXPECT_THAT(data, Each(Each(2.0f)));
  EXPECT_GE(most, kWindow / 2);
  EXPECT_LE(most, kWindow + 2) << "control datagrams may go beyond, data may not";
}

TEST(Node, WhatComesBeforeAProcessHasJoinedIsKept) {
  Processes processes(2);
  const std::vector<Rank> slots = {0, 1};
  Member& early = processes.join(5, slots, 0);
  std::vector<float> one(1000, 1.0f);  // two datagrams, so both ranks own and contribute
  std::vector<float> two(1000, 2.0f);
  const Request& first = processes.all_reduce(0, early, one, best_effort(1s));
  processes.pass(2 * kDelay);
  Member& late = processes.join(5, slots, 1);
  processes.all_reduce(1, late, two, best_effort(1s));
  ASSERT_TRUE(processes.run_until([&] { return first.done; }, 5ms)) << "nothing was lost";
  EXPECT_EQ(first.report.loss, 0.0);
  EXPECT_THAT(one, Each(3.0f));
  EXPECT_GE(processes[1].refused()[static_cast<int>(wire::Refusal::epoch)], 1u)
      << "counted all the same";
}

// A process that lives may join a communicator late, and must not be taken for dead (WIRE 6.9).
TEST(Node, AProcessThatJoinsLateIsNotTakenForDead) {
  Processes processes(2);
  const std::vector<Rank> slots = {0, 1};
  processes.join(1, slots);
  Member& early = processes.join(5, slots, 0);
  std::vector<float> one(100, 1.0f);
  std::vector<float> two(100, 2.0f);
  const Request& first = processes.all_reduce(0, early, one);
  processes.pass(60s);
  ASSERT_FALSE(first.done) << first.status.text();
  EXPECT_EQ(early.engine().endpoint().peers_proven(), 0)
      << "its process lives, the rank is not there";
  Member& late = processes.join(5, slots, 1);
  const Request& second = processes.all_reduce(1, late, two);
  ASSERT_TRUE(processes.run_until([&] { return first.done && second.done; }, 1s));
  EXPECT_TRUE(first.status.ok()) << first.status.text();
  EXPECT_TRUE(second.status.ok()) << second.status.text();
  EXPECT_THAT(one, Each(3.0f));
}

TEST(Node, ACallThatWaitsForOneWhoNeverJoinsEndsByItsDeadline) {
  Processes processes(2);
  processes.join(1, {0, 1});
  Member& early = processes.join(5, {0, 1}, 0);
  std::vector<float> data(100, 1.0f);
  const Request& request = processes.all_reduce(0, early, data, exact(20s));
  ASSERT_TRUE(processes.run_until([&] { return request.done; }, 21s));
  EXPECT_EQ(request.status.code(), StatusCode::kDeadlineExceeded) << request.status.text();
}

TEST(Node, AProcessThatDiesBeforeItJoinsIsFoundDead) {
  Processes processes(2);
  processes.join(1, {0, 1});
  Member& early = processes.join(5, {0, 1}, 0);
  std::vector<float> data(100, 1.0f);
  const Request& request = processes.all_reduce(0, early, data);
  processes.pass(10s);
  ASSERT_FALSE(request.done) << request.status.text();
  processes.stop(1);
  ASSERT_TRUE(processes.run_until([&] { return request.done; }, 3'500ms));
  EXPECT_EQ(request.status.code(), StatusCode::kPeerLost);
}

// Collects what a process answers to a datagram of a communicator that it does not know.
class Answers : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kUnknown = 77;
  static constexpr std::uint32_t kSequence = 1234;

  Answers() {
    processes_.join(1, {0, 1});
    processes_.observer = [this](Rank, Rank, ByteSpan datagram) {
      answers_.emplace_back(datagram.begin(), datagram.end());
    };
  }
  // Sends a datagram to process 1, as if from `slot`. Returns the prefixes of the answers.
  std::vector<wire::Prefix> answers_to(wire::PacketType type, Rank slot = 0, Rank destination = 4) {
    std::array<std::byte, wire::kPrefixBytes> datagram{};
    wire::encode_bare({type, kUnknown, 2, destination, kSequence}, datagram);
    answers_.clear();
    processes_[1].on_datagram(processes_.now(), slot, datagram);
    processes_.pass(1s);
    std::vector<wire::Prefix> prefixes;
    for (const auto& answer : answers_) {
      EXPECT_LE(answer.size(), datagram.size());
      EXPECT_EQ(wire::decode_prefix(answer, nullptr, prefixes.emplace_back()), wire::Refusal::none);
    }
    return prefixes;
  }

  Processes processes_{3};
  std::vector<std::vector<std::byte>> answers_;
};

TEST_F(Answers, AProbeIsAnsweredOnceInTheNameOfTheRankThatItIsFor) {
  const std::uint32_t sent = processes_[1].path(0).last_sequence();
  const auto answers = answers_to(wire::PacketType::probe);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].type, wire::PacketType::alive);
  EXPECT_EQ(answers[0].epoch, kUnknown);
  EXPECT_EQ(answers[0].source, 4);
  EXPECT_EQ(answers[0].destination, 2);
  EXPECT_EQ(answers[0].sequence, kSequence) << "the probe's";
  EXPECT_EQ(processes_[1].path(0).last_sequence(), sent) << "the answer takes no credit";
}

TEST_F(Answers, NothingElseIsAnswered) {
  for (const auto type : {wire::PacketType::goodbye, wire::PacketType::given_up,
                          wire::PacketType::alive, wire::PacketType::end}) {
    EXPECT_TRUE(answers_to(type).empty()) << static_cast<int>(type);
  }
  EXPECT_TRUE(answers_to(wire::PacketType::probe, 0, kEveryRank).empty()) << "whose rank?";
}

TEST_F(Answers, AProcessThatWasNeverMetGetsNone) {
  EXPECT_TRUE(answers_to(wire::PacketType::probe, 2).empty());
  EXPECT_TRUE(answers_to(wire::PacketType::probe, 2000).empty());
}

TEST_F(Answers, AFloodOfProbesIsAnsweredInPart) {
  std::array<std::byte, wire::kPrefixBytes> datagram{};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    wire::encode_bare({wire::PacketType::probe, kUnknown + i, 2, 4, i}, datagram);
    processes_[1].on_datagram(processes_.now(), 0, datagram);
  }
  processes_.pass(1s);
  EXPECT_EQ(answers_.size(), 64u);
}

TEST_F(Answers, AProcessThatIsHeldForDeadIsToldSo) {  // WIRE 6.7
  std::vector<float> data(100, 1.0f);
  Member& member = processes_.join(2, {0, 1}, 1);
  processes_.stop(0);
  const Request& request = processes_.all_reduce(1, member, data);
  ASSERT_TRUE(processes_.run_until([&] { return request.done; }));
  const auto answers = answers_to(wire::PacketType::probe);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].type, wire::PacketType::given_up);
  EXPECT_EQ(answers[0].sequence, processes_[1].path(0).last_sequence()) << "numbered by the path";
}

TEST(Node, AnAnswerIsHeardOnlyByThePath) {
  Processes processes(2);
  const auto members = processes.join(5, {0, 1});
  std::vector<float> data(100, 1.0f);
  processes.all_reduce(0, *members[0], data);
  processes.pass(kDelay / 2);
  const std::uint32_t sent = processes[0].path(1).last_sequence();
  const auto tell = [&](std::uint32_t sequence) {
    std::array<std::byte, wire::kPrefixBytes> alive{};
    wire::encode_bare({wire::PacketType::alive, 5, 1, 0, sequence}, alive);
    processes[0].on_datagram(processes.now(), 1, alive);
  };
  const auto& endpoint = members[0]->engine().endpoint();
  tell(sent + 1);
  EXPECT_EQ(processes[0].path(1).heard_at(), Instant{0}) << "no such datagram was sent";
  EXPECT_EQ(endpoint.counters().refused_report, 1u);
  tell(sent);
  EXPECT_EQ(processes[0].path(1).heard_at(), processes.now());
  EXPECT_EQ(endpoint.counters().refused_report, 1u);
  EXPECT_EQ(endpoint.peers_proven(), 0);
  EXPECT_EQ(processes[0].path(1).received(), 0u);
}

TEST(Node, OneWhoSpeaksToAClosedCommunicatorIsToldSo) {  // WIRE 6.8
  Processes processes(2);
  const auto members = processes.join(5, {0, 1});
  std::vector<float> data(100, 1.0f);
  (void)processes[1].part(*members[1]);
  const Request& request = processes.all_reduce(0, *members[0], data);
  ASSERT_TRUE(processes.run_until([&] { return request.done; }, 1s));
  EXPECT_EQ(request.status.code(), StatusCode::kPeerLost);
}

TEST(Node, TwoThatHaveClosedDoNotAnswerEachOther) {
  Processes processes(2);
  const auto members = processes.join(5, {0, 1});
  std::vector<float> data(100, 1.0f);
  processes.all_reduce(0, *members[0], data, best_effort(1s));
  (void)processes[1].part(*members[1]);
  processes.pass(50us);
  (void)processes[0].part(*members[0]);
  processes.pass(10ms);
  const std::size_t sent = processes.sent();
  processes.pass(10s);
  EXPECT_EQ(processes.sent(), sent);
}

TEST(Node, ADeathThatOneCommunicatorFindsIsKnownToAll) {
  Processes processes(3);
  const auto a = processes.join(1, {0, 1, 2});
  const auto b = processes.join(2, {2, 0});
  std::vector<float> of_a(100, 1.0f);
  std::vector<float> of_b(100, 1.0f);
  processes.stop(2);
  const Request& first = processes.all_reduce(0, *a[0], of_a);
  processes.pass(2s);
  const Request& second = processes.all_reduce(0, *b[1], of_b);
  ASSERT_TRUE(processes.run_until([&] { return first.done; }, 2s));
  ASSERT_TRUE(processes.run_until([&] { return second.done; }, 1ms)) << "although it began later";
  EXPECT_THAT(second.status.c_str(), HasSubstr("rank 0 is dead")) << "its rank there";
  // A new communicator must know from the start that the process is dead, so its call ends at once.
  const auto c = processes.join(3, {0, 2});
  std::vector<float> of_c(100, 1.0f);
  EXPECT_TRUE(processes.all_reduce(0, *c[0], of_c).done);
}

TEST(Node, JunkIsRefusedAndCountedAndNotAnswered) {
  Processes processes(2);
  const auto members = processes.join(5, {0, 1});
  const std::vector<std::byte> tiny(10);
  const std::vector<std::byte> zeros(100);
  processes[0].on_datagram(processes.now(), 1, tiny);
  processes[0].on_datagram(processes.now(), 1, zeros);
  const auto& refused = processes[0].refused();
  EXPECT_EQ(refused[static_cast<int>(wire::Refusal::truncated)], 1u);
  EXPECT_EQ(refused[static_cast<int>(wire::Refusal::magic)], 1u);
  processes.pass(1s);
  EXPECT_EQ(processes.sent(), 0u);
  EXPECT_EQ(members[0]->engine().endpoint().peers_proven(), 0);
}

TEST(Node, AMemberOfAnotherCommunicatorIsNoMemberOfThis) {
  Processes processes(3);
  const auto a = processes.join(5, {0, 1});
  processes.join(6, {0, 2});
  std::array<std::byte, wire::kPrefixBytes> probe{};
  wire::encode_bare({wire::PacketType::probe, 5, 1, 0, 1}, probe);
  processes[0].on_datagram(processes.now(), 2, probe);  // as if process 2 were rank 1 of a
  EXPECT_EQ(processes[0].refused()[static_cast<int>(wire::Refusal::misrouted)], 1u);
  EXPECT_EQ(a[0]->engine().endpoint().peers_proven(), 0);
}

}  // namespace
}  // namespace leeway::collective
