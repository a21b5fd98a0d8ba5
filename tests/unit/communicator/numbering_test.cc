// Some calls are made by some ranks only: messages, refused calls and shrinks. They must take no
// number from the calls of all ranks, before, between or after collectives, over every route. Ranks
// are threads.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "unit/communicator/near_group.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;

// Deadline that turns a hang into an error.
constexpr Duration kPatience = 20s;
constexpr std::size_t kLength = 1000;

struct Route {
  const char* name;
  TransportKind transport;
  std::vector<int> ranks = {2, 3, 4, 6};
  int lanes = 1;
  bool sites = false;
  bool faults = false;         // memory without an arena
  std::size_t large = 70'000;  // elements of a call that goes by sites, or by lanes
};

const std::array kRoutes = {
    Route{.name = "Near", .transport = TransportKind::shm},
    Route{.name = "Datagrams", .transport = TransportKind::mixed, .faults = true},
    Route{.name = "Udp", .transport = TransportKind::udp},
    Route{.name = "Inproc", .transport = TransportKind::inproc},
    Route{.name = "NearSites", .transport = TransportKind::shm, .ranks = {4, 6}, .sites = true},
    Route{.name = "UdpSites", .transport = TransportKind::udp, .ranks = {4, 6}, .sites = true},
    Route{.name = "Lanes", .transport = TransportKind::udp, .lanes = 2, .large = 600'000},
};

// One rank, on its own thread.
struct Member {
  Communicator& communicator;
  Rank rank;
  Rank ranks;
  std::size_t large;
  std::string where;  // for people

  static CollectiveOptions patient(Codec codec = Codec::native, std::uint32_t tag = 0) {
    CollectiveOptions options{.delivery = exact(kPatience), .tag = tag};
    options.codec = codec;
    return options;
  }
  void expect_ok(const Result<CollectiveReport>& report) const {
    EXPECT_TRUE(report.ok()) << where << ": " << report.status().c_str();
  }

  Work begin_sum(std::vector<float>& values) const {
    values.assign(kLength, static_cast<float>(rank + 1));
    return communicator.all_reduce_async(std::span(values), patient());
  }
  void finish_sum(Work& work, const std::vector<float>& values) const {
    expect_ok(work.wait());
    EXPECT_EQ(values.back(), static_cast<float>(ranks * (ranks + 1) / 2)) << where;
  }
  void sum(std::size_t length = kLength, Codec codec = Codec::native) const {
    std::vector<float> values(length, static_cast<float>(rank + 1));
    expect_ok(communicator.all_reduce(std::span(values), patient(codec)));
    EXPECT_EQ(values.back(), static_cast<float>(ranks * (ranks + 1) / 2)) << where;
  }
  // Makes one call by each of the routes.
  void all_together() const {
    sum();
    std::vector<float> values(10, rank == ranks - 1 ? 7.0f : 0.0f);
    expect_ok(communicator.broadcast(std::span(values), ranks - 1, patient()));
    EXPECT_EQ(values.back(), 7.0f);
    sum(100, Codec::bf16);
    expect_ok(communicator.barrier(kPatience));
    sum(large);
  }

  Work begin_send(const std::vector<float>& values, Rank to, std::uint32_t tag = 0) const {
    return communicator.send_async(std::span(values), to, patient(Codec::native, tag));
  }
  Work begin_recv(std::vector<float>& values, Rank from, std::uint32_t tag = 0) const {
    return communicator.recv_async(std::span(values), from, patient(Codec::native, tag));
  }
  void send(Rank to, std::size_t length = kLength) const {
    const std::vector<float> values(length, static_cast<float>(rank));
    expect_ok(begin_send(values, to).wait());
  }
  void recv(Rank from, std::size_t length = kLength) const {
    std::vector<float> values(length, -1.0f);
    expect_ok(begin_recv(values, from).wait());
    if (from == kAnyRank) return;
    EXPECT_EQ(values.back(), static_cast<float>(from)) << where;
  }
};

using Act = void (*)(const Member& member);

void message(const Member& member) {
  if (member.rank == 0) member.send(1);
  if (member.rank == 1) member.recv(0);
}

void send_around_a_collective(const Member& member) {
  const std::vector<float> out(kLength, 0.0f);
  Work work;
  if (member.rank == 0) work = member.begin_send(out, 1);
  member.sum();
  if (member.rank == 0) member.expect_ok(work.wait());
  if (member.rank == 1) member.recv(0);
}

void receive_around_a_collective(const Member& member) {
  std::vector<float> in(kLength, -1.0f);
  Work work;
  if (member.rank == 1) work = member.begin_recv(in, 0);
  member.sum();
  if (member.rank == 0) member.send(1);
  if (member.rank == 1) member.expect_ok(work.wait());
}

void messages_while_collectives_are_under_way(const Member& member) {
  std::array<std::vector<float>, 3> values;
  std::array<Work, 3> works;
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i] = member.begin_sum(values[i]);
    if (member.rank == i % 2) member.send(1 - member.rank);
    if (member.rank == 1 - i % 2) member.recv(1 - member.rank);
  }
  for (std::size_t i = works.size(); i-- > 0;) member.finish_sum(works[i], values[i]);
}

// Rank 0 makes a group of messages, and rank 1 makes the same messages as single calls.
void group_against_single_calls(const Member& member) {
  if (member.rank == 0) {
    const std::vector<float> out(kLength, 0.0f);
    std::vector<float> in(kLength);
    const std::array messages = {Message::send(std::span(out), 1), Message::send(std::span(out), 1),
                                 Message::recv(std::span(in), 1)};
    member.expect_ok(member.communicator.exchange(messages, member.patient()));
  }
  if (member.rank != 1) return;
  member.recv(0);
  member.recv(0);
  member.send(0);
}

void ring_of_groups(const Member& member) {
  const std::vector<float> out(kLength, static_cast<float>(member.rank));
  std::vector<float> in(kLength);
  const Rank next = (member.rank + 1) % member.ranks;
  const Rank before = (member.rank + member.ranks - 1) % member.ranks;
  const std::array messages = {Message::send(std::span(out), next),
                               Message::recv(std::span(in), before)};
  member.expect_ok(member.communicator.exchange(messages, member.patient()));
  EXPECT_EQ(in.back(), static_cast<float>(before));
}

void all_to_one(const Member& member) {
  if (member.rank != 0) return member.send(0);
  for (Rank peer = 1; peer < member.ranks; ++peer) member.recv(kAnyRank);
}

void tags_out_of_order(const Member& member) {
  const std::vector<float> out(kLength, 5.0f);
  std::vector<float> in(kLength);
  for (const std::uint32_t turn : {1u, 2u}) {
    if (member.rank == 0) member.expect_ok(member.begin_send(out, 1, turn).wait());
    if (turn == 1) member.sum();
    if (member.rank == 1) member.expect_ok(member.begin_recv(in, 0, turn).wait());
  }
}

void long_message(const Member& member) {
  if (member.rank == 0) member.send(1, member.large);
  if (member.rank == 1) member.recv(0, member.large);
}

void messages_of_a_part(const Member& member) {
  auto part = member.communicator.split(static_cast<int>(member.rank) % 2, 0);
  ASSERT_TRUE(part.ok()) << part.status().c_str();
  const Member inside{**part, (*part)->rank(), static_cast<Rank>((*part)->size()), member.large,
                      member.where};
  inside.sum();
  if (inside.ranks > 1) message(inside);
  inside.sum();
}

// A call that fails its checks is refused on that rank. The others hear of that in their own calls.
void refused(const Member& member) {
  std::vector<float> few(3);
  std::vector<float> more(member.rank == 0 ? 4 : 3);
  const auto outcome = member.communicator.all_reduce(std::span(std::as_const(few)),
                                                      std::span(more), member.patient(Codec::bf16));
  EXPECT_EQ(outcome.status().code(),
            member.rank == 0 ? StatusCode::kInvalidArgument : StatusCode::kMismatch)
      << member.where << ": " << outcome.status().c_str();
}

// Rank 1's call is refused, as rank 0's in refused(). The call has no codec, so it goes by the
// route of exact calls.
void refused_exactly(const Member& member) {
  std::vector<float> few(3);
  std::vector<float> more(member.rank == 1 ? 4 : 3);
  const auto outcome = member.communicator.all_reduce(std::span(std::as_const(few)),
                                                      std::span(more), member.patient());
  EXPECT_EQ(outcome.status().code(),
            member.rank == 1 ? StatusCode::kInvalidArgument : StatusCode::kMismatch)
      << member.where << ": " << outcome.status().c_str();
}

// Rank 0's call has more datagrams than a flow may have. That limit is checked only for datagrams,
// and depends on the rank's own blocks.
void refused_for_its_length(const Member& member) {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  float element = 0;
  std::vector<std::size_t> counts(member.ranks, 0);
  if (member.rank == 0) counts[1] = kMost;
  const auto outcome = member.communicator.all_to_all(
      ConstTensorView(&element, counts[1], DataType::f32), Blocks(counts),
      TensorView(&element, 0, DataType::f32), Blocks(std::vector<std::size_t>(member.ranks, 0)),
      member.patient());
  EXPECT_EQ(outcome.status().code(),
            member.rank == 0 ? StatusCode::kResourceExhausted : StatusCode::kMismatch)
      << member.where << ": " << outcome.status().c_str();
}

struct Step {
  const char* name;
  Act act;
};
constexpr std::array kSteps = {
    Step{"a message", message},
    Step{"a send around a collective", send_around_a_collective},
    Step{"a receive around a collective", receive_around_a_collective},
    Step{"messages while collectives are under way", messages_while_collectives_are_under_way},
    Step{"a group against single calls", group_against_single_calls},
    Step{"a ring of groups", ring_of_groups},
    Step{"all to one", all_to_one},
    Step{"tags out of order", tags_out_of_order},
    Step{"a long message", long_message},
    Step{"messages of a part", messages_of_a_part},
    Step{"a refused call", refused},
    Step{"a refused exact call", refused_exactly},
    Step{"a call refused for its length", refused_for_its_length},
};

class Numbering : public ::testing::TestWithParam<Route> {
 protected:
  void SetUp() override {
    if (GetParam().transport != TransportKind::udp && !check_memory().ok())
      GTEST_SKIP() << check_memory().c_str();
  }
  static Group group_of(int ranks) {
    const Route& route = GetParam();
    Options options;
    options.transport = route.transport;
    options.join_timeout = kPatience;
    options.lanes = route.lanes;
    if (route.faults) options.faults.duplicate = 0.01;
    if (route.transport == TransportKind::inproc) {
      auto made = Communicator::create_inproc(ranks, options);
      return made.ok() ? std::move(*made) : Group();
    }
    options.bind_address = "127.0.0.1";
    options.store = std::make_shared<InprocRendezvous>();
    options.world_size = ranks;
    Group group(static_cast<std::size_t>(ranks));
    on_each(group.size(), [&](std::size_t rank) {
      Options own = options;
      own.rank = static_cast<int>(rank);
      if (route.sites) own.site = rank % 2 == 0 ? "even" : "odd";
      auto made = Communicator::create(own);
      ASSERT_TRUE(made.ok()) << made.status().c_str();
      group[rank] = std::move(*made);
    });
    return group;
  }
};

TEST_P(Numbering, IsThatOfWhatAllRanksCall) {
  for (const int ranks : GetParam().ranks) {
    Group group = group_of(ranks);
    for (const Step& step : kSteps) {
      const std::string where = std::to_string(ranks) + " ranks, " + step.name;
      on_each(group.size(), [&](std::size_t rank) {
        const Member member{*group[rank], static_cast<Rank>(rank), static_cast<Rank>(ranks),
                            GetParam().large, where};
        step.act(member);
        member.all_together();
      });
      if (HasFailure()) return;
    }
  }
}

// Ranks that shrink without some rank have then made more shrinks than that rank. Later shrinks of
// all these ranks must work.
TEST_P(Numbering, OfShrinksIsThatOfTheRanksThatGoOn) {
  Group group = group_of(4);
  Group parts(4);
  const auto shrink = [&](const std::vector<Rank>& excluded) {
    on_each(group.size(), [&](std::size_t rank) {
      if (std::find(excluded.begin(), excluded.end(), rank) != excluded.end()) return;
      auto made = group[rank]->shrink(excluded);
      ASSERT_TRUE(made.ok()) << made.status().c_str();
      const Member member{**made, (*made)->rank(), static_cast<Rank>((*made)->size()), 0, "shrink"};
      member.sum();
      parts[rank] = std::move(*made);
    });
  };
  for (const std::vector<Rank>& excluded : {std::vector<Rank>{3}, {3}, {}, {0, 1}, {2}, {}, {3}}) {
    if (!HasFailure()) shrink(excluded);
  }
}

INSTANTIATE_TEST_SUITE_P(OverEveryRoute, Numbering, ::testing::ValuesIn(kRoutes),
                         [](const auto& route) { return std::string(route.param.name); });

}  // namespace
}  // namespace leeway::internal
