// Tests how long datagrams may be on each path of a process, in virtual time.
#include "collective/path_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "unit/collective/node_processes.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

// Three processes whose paths are measured; one of them may carry less than the others.
class NodeSizes : public ::testing::Test {
 protected:
  NodeSizes() : processes(3, {}, {.most = 1472}) {
    processes.loses = [this](ByteSpan datagram) {
      wire::Prefix prefix;
      EXPECT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
      const bool narrow = prefix.source == 0 && prefix.destination == 1;
      lost += narrow && datagram.size() > carries;
      return narrow && datagram.size() > carries;
    };
    members = processes.join(1, {0, 1, 2});
  }

  // Makes an all_reduce and returns its duration.
  Duration all_reduce() {
    std::vector<std::vector<float>> data(3, std::vector<float>(30'000, 1.0f));
    std::vector<const Request*> requests;
    const Instant start = processes.now();
    for (Rank slot = 0; slot < 3; ++slot)
      requests.push_back(&processes.all_reduce(slot, *members[slot], data[slot]));
    const auto done = [](const Request* request) { return request->done; };
    EXPECT_TRUE(processes.run_until(
        [&] { return std::all_of(requests.begin(), requests.end(), done); }, 10s));
    for (const auto& result : data) EXPECT_THAT(result, Each(3.0f));
    return processes.now() - start;
  }
  // Lets ranks ask each other for sizes, a hundred times at most.
  void ask_until(const std::function<bool()>& done) {
    for (int i = 0; i < 100 && !done(); ++i) {
      for (Rank slot = 0; slot < 3; ++slot) {
        if (!processes[slot].sizes().agree(*members[slot], /*measured=*/true))
          members[slot]->engine().endpoint().probe_all();
        processes[slot].touch(*members[slot]);
      }
      processes.pass(1ms);
    }
    ASSERT_TRUE(done());
  }
  void agree(std::size_t expected) {
    ask_until([&] {
      return std::all_of(members.begin(), members.end(), [](const Member* member) {
        return member->sizes().agreed_bytes().has_value();
      });
    });
    for (Member* const member : members) {
      ASSERT_EQ(member->sizes().agreed_bytes(), expected);
      member->engine().endpoint().shorten_datagrams(expected);
    }
  }
  std::size_t bytes(Rank from, Rank to) { return processes[from].path(to).size.bytes(); }

  std::size_t carries = 9000;
  std::size_t lost = 0;
  Processes processes;
  std::vector<Member*> members;
};

// Datagrams for a path that became narrower are cut into pieces. Once its size is known, no
// datagram is lost for its length.
TEST_F(NodeSizes, APathThatBecomesNarrowCarriesDatagramsInPieces) {
  all_reduce();
  const Duration normal = all_reduce();
  EXPECT_EQ(bytes(0, 1), 1472u);
  // Some datagrams were cut already, because a path counts as no wider than the base size until its
  // first report.
  const std::uint64_t cut_at_first = processes[0].sizes().counters().datagrams_cut;
  const std::uint64_t cut_at_first_by_2 = processes[2].sizes().counters().datagrams_cut;
  carries = 1272;
  all_reduce();
  EXPECT_EQ(bytes(0, 1), 1200u);
  EXPECT_EQ(bytes(0, 2), 1472u);
  EXPECT_EQ(bytes(1, 0), 1472u) << "the other direction";
  processes.pass(1s);  // the search is over
  const std::size_t lost_before = lost;
  EXPECT_LT(all_reduce(), normal + normal / 4);
  EXPECT_EQ(lost, lost_before) << "nothing that is too long is sent";
  EXPECT_GT(processes[0].sizes().counters().datagrams_cut, cut_at_first + 50);
  EXPECT_EQ(processes[2].sizes().counters().datagrams_cut, cut_at_first_by_2);
  carries = 9000;
  processes.pass(601s);
  EXPECT_EQ(bytes(0, 1), 1472u);
}

TEST_F(NodeSizes, RanksAgreeOnWhatAllPathsCarry) {  // WIRE 10.4
  carries = 1410;
  agree(1400);
  const std::size_t lost_before = lost;
  all_reduce();
  EXPECT_EQ(lost, lost_before);
  EXPECT_EQ(processes[0].sizes().counters().datagrams_cut, 0u);
}

TEST_F(NodeSizes, APathMayCarryLessThanTheBase) {
  carries = 980;
  agree(952);
  all_reduce();
  EXPECT_EQ(bytes(0, 1), 952u);
}

// The path has become narrower than the base size since the communicator was made. Datagrams of the
// base size are lost until both ends know that.
TEST_F(NodeSizes, APathMayBecomeNarrowerThanTheBase) {
  all_reduce();
  carries = 700;
  all_reduce();
  processes.pass(1s);
  EXPECT_EQ(bytes(0, 1), 548u);
  const std::size_t lost_before = lost;
  all_reduce();
  EXPECT_EQ(lost, lost_before);
}

// The datagram that told a peer this rank's size may be lost. No other rank can tell the peer, so a
// rank that leaves must make sure that the peer knows.
TEST_F(NodeSizes, ARankThatLeavesMakesSureThatPeersKnowItsSize) {
  EXPECT_TRUE(members[0]->all_know_size()) << "ranks have not asked each other";
  bool mute = true;
  processes.loses = [&](ByteSpan datagram) {
    wire::Prefix prefix;
    EXPECT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    wire::Size size;
    return mute && prefix.source == 0 && prefix.destination == 1 &&
           prefix.type == wire::PacketType::size &&
           wire::decode_size(datagram, size) == wire::Refusal::none &&
           size.role >= wire::Size::Role::mine;
  };
  const std::vector<Rank> rank_0 = {0};
  ask_until([&] {
    return members[0]->sizes().untold().empty() && members[2]->sizes().untold().empty() &&
           members[1]->sizes().untold() == rank_0;
  });
  EXPECT_FALSE(members[0]->all_know_size());
  mute = false;
  processes.pass(1s);
  EXPECT_EQ(members[1]->sizes().untold(), rank_0) << "nobody has asked again";
  processes[0].sizes().tell(*members[0]);
  processes[0].touch(*members[0]);
  processes.pass(100ms);
  EXPECT_TRUE(members[1]->sizes().untold().empty());
  EXPECT_TRUE(members[0]->all_know_size());
}

TEST_F(NodeSizes, APathThatCarriesNothingUsefulIsNamed) {
  carries = 200;
  const auto narrow = [&] { return processes[0].sizes().too_narrow(*members[0]) != kNoRank; };
  ask_until(narrow);
  EXPECT_EQ(processes[0].sizes().too_narrow(*members[0]), 1u);
  EXPECT_EQ(processes[1].sizes().too_narrow(*members[1]), kNoRank);
}

TEST_F(NodeSizes, WhatTheSystemRefusesForOnePeerHurtsNoOther) {
  all_reduce();
  EXPECT_EQ(bytes(0, 1), 1472u);
  carries = 1272;
  processes[0].sizes().on_refused(processes.now(), 1, 1472);
  EXPECT_EQ(bytes(0, 1), 1200u);
  EXPECT_EQ(bytes(0, 2), 1472u);
  all_reduce();
  processes.pass(1s);
  EXPECT_EQ(processes[0].sizes().counters().probes_sent, 2u + 6 + 2 * 3u)
      << "and it is searched at once";
}

TEST_F(NodeSizes, AnUnknownProcessIsNotAnswered) {
  std::array<std::byte, 1000> probe{};
  wire::encode_size({.type = wire::PacketType::size, .epoch = 1, .source = 7, .destination = 0},
                    {.bytes = 1000}, probe);
  processes[0].on_datagram(processes.now(), 7, probe);
  EXPECT_EQ(processes[0].refused()[static_cast<int>(wire::Refusal::epoch)], 1u);
}

// Tests what a process answers to datagrams about sizes that are for none of its members.
class PathSizesOfNoMember : public ::testing::Test {
 protected:
  using Role = wire::Size::Role;

  PathSizesOfNoMember() { paths.meet(0); }
  wire::Refusal say(Role role, const FormerMember* former) {
    const wire::Prefix prefix{wire::PacketType::size, 5, 0, 1, 9};
    std::array<std::byte, 1472> memory{};
    const std::size_t bytes = wire::encode_size(prefix, {.role = role, .bytes = 1472}, memory);
    return sizes.on_size(Instant{1}, 0, prefix, ByteSpan(memory).first(bytes), nullptr, former);
  }
  wire::Size answer() {
    EXPECT_FALSE(answers.write(Instant{1}, paths, *buffer));
    const Slice datagram = buffer->train().slices[0];
    const ByteSpan bytes(datagram.data, datagram.bytes);
    wire::Prefix prefix;
    wire::Size size;
    EXPECT_EQ(wire::decode_prefix(bytes, nullptr, prefix), wire::Refusal::none);
    EXPECT_EQ(wire::decode_size(bytes, size), wire::Refusal::none);
    EXPECT_EQ(prefix.source, 1);
    EXPECT_EQ(prefix.destination, 0);
    EXPECT_EQ(prefix.sequence, 9u);
    return size;
  }

  Paths paths;
  AnswerQueue answers;
  PathSizes sizes{paths, answers};
  std::unique_ptr<protocol::TrainBuffer> buffer = std::make_unique<protocol::TrainBuffer>();
};

TEST_F(PathSizesOfNoMember, AProbeIsAnsweredWithItsLength) {
  EXPECT_EQ(say(Role::probe, nullptr), wire::Refusal::none);
  const wire::Size said = answer();
  EXPECT_EQ(said.role, Role::answer);
  EXPECT_EQ(said.bytes, 1472);
  EXPECT_EQ(say(Role::answer, nullptr), wire::Refusal::field) << "nothing was asked";
}

TEST_F(PathSizesOfNoMember, OneThatHasLeftStillTellsItsSize) {
  const FormerMember former{.epoch = 5, .self = 1, .slots = {0, 1}, .size = 1400};
  EXPECT_EQ(say(Role::mine, nullptr), wire::Refusal::epoch);
  EXPECT_EQ(say(Role::yours, &former), wire::Refusal::epoch);
  ASSERT_TRUE(answers.empty());
  EXPECT_EQ(say(Role::mine, &former), wire::Refusal::none);
  const wire::Size said = answer();
  EXPECT_EQ(said.role, Role::yours);
  EXPECT_EQ(said.bytes, 1400);
}

}  // namespace
}  // namespace leeway::collective
