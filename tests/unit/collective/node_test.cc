// Many communicators of a process over shared paths, on a network in virtual time.
#include "collective/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>

#include "protocol/train_buffer.h"
#include "support/datagram_view.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr Duration kDelay = 100us;
constexpr std::size_t kWindow = 16;  // datagrams

// Processes whose slots are their numbers.
class Processes {
 public:
  explicit Processes(int count, const congestion::Settings& congestion = {},
                     const protocol::SizeLimits& sizes = {})
      : Processes(std::vector(static_cast<std::size_t>(count), congestion), sizes) {}
  explicit Processes(const std::vector<congestion::Settings>& congestion,
                     const protocol::SizeLimits& sizes = {}) {
    for (const congestion::Settings& settings : congestion) {
      nodes_.push_back(std::make_unique<Node>(settings));
      nodes_.back()->measure_sizes(sizes);
    }
  }

  // A communicator of these processes, in this order, each of which joins now.
  std::vector<Member*> join(std::uint32_t epoch, std::vector<Rank> slots) {
    std::vector<Member*> members;
    for (std::size_t rank = 0; rank < slots.size(); ++rank)
      members.push_back(&join(epoch, slots, static_cast<Rank>(rank)));
    return members;
  }
  Member& join(std::uint32_t epoch, const std::vector<Rank>& slots, Rank rank) {
    protocol::EndpointConfig config;
    config.self = rank;
    config.size = static_cast<int>(slots.size());
    config.epoch = epoch;
    config.seed = epoch;
    config.window_bytes.assign(slots.size(), window * config.datagram_bytes);
    config.rtt_initial = 2 * kDelay;
    config.peer_timeout = 3s;
    return nodes_[slots[rank]]->join(now_, config, slots);
  }

  Node& operator[](Rank slot) { return *nodes_[slot]; }
  Instant now() const { return now_; }
  std::size_t sent() const { return sent_; }
  void stop(Rank slot) { stopped_ = slot; }

  Request& all_reduce(Rank slot, Member& member, std::vector<float>& data,
                      const Delivery& delivery = exact(no_deadline)) {
    Request& request = requests_.emplace_back();
    request.spec.kind = OperationKind::all_reduce;
    request.spec.input = std::span<const float>(data);
    request.spec.output = std::span(data);
    request.spec.options.delivery = delivery;
    member.engine().submit(now_, request);
    nodes_[slot]->touch(member);
    return request;
  }

  bool run_until(const std::function<bool()>& done, Duration limit = 10s) {
    const Instant end = now_ + limit;
    for (;;) {
      pump();
      if (done()) return true;
      const Instant next = next_event();
      if (next > end) break;
      now_ = std::max(now_, next);
      while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
        const auto flight = flights_.extract(flights_.begin());
        const auto& [from, to, bytes] = flight.mapped();
        if (to != stopped_) nodes_[to]->on_datagram(now_, from, bytes);
      }
    }
    now_ = end;
    return done();
  }
  void pass(Duration time) {
    (void)run_until([] { return false; }, time);
  }

  std::size_t window = kWindow;  // of those who join from now on
  std::function<void(Rank from, Rank to, ByteSpan datagram)> observer;
  std::function<bool(ByteSpan datagram)> loses;

 private:
  struct Flight {
    Rank from, to;
    std::vector<std::byte> bytes;
  };

  Instant next_event() const {
    Instant next = flights_.empty() ? Instant::infinite_future() : Instant{flights_.begin()->first};
    for (Rank slot = 0; slot < nodes_.size(); ++slot) {
      if (slot != stopped_) next = std::min(next, nodes_[slot]->next_wake().value_or(next));
    }
    return next;
  }
  void pump() {
    for (Rank slot = 0; slot < nodes_.size(); ++slot) {
      if (slot == stopped_) continue;
      nodes_[slot]->on_wake(now_);
      while (nodes_[slot]->poll_train(now_, *buffer_)) launch(slot, buffer_->train());
      nodes_[slot]->on_wake(now_);
    }
  }
  void launch(Rank from, const Train& train) {
    std::vector<std::byte> bytes;
    for (const Slice& slice : train.slices)
      bytes.insert(bytes.end(), slice.data, slice.data + slice.bytes);
    for (std::size_t at = 0; at < bytes.size(); at += train.segment_bytes) {
      const ByteSpan datagram =
          ByteSpan(bytes).subspan(at, std::min(train.segment_bytes, bytes.size() - at));
      ++sent_;
      if (observer) observer(from, train.to, datagram);
      if (loses && loses(datagram)) continue;
      flights_.emplace((now_ + kDelay).ns,
                       Flight{from, train.to, {datagram.begin(), datagram.end()}});
    }
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  Instant now_{1'000'000'000};
  Rank stopped_ = kNoRank;
  std::multimap<std::int64_t, Flight> flights_;
  std::deque<Request> requests_;
  std::size_t sent_ = 0;
  std::unique_ptr<protocol::TrainBuffer> buffer_ = std::make_unique<protocol::TrainBuffer>();
};

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
  std::vector<float> one(1000, 1.0f);  // two datagrams: both ranks own, and contribute
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

// WIRE 6.9
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
  EXPECT_EQ(early.engine().endpoint().peers_heard(), 0)
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

// What a process answers to a datagram of a communicator that it does not know.
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
  // To process 1, as if from `slot`.
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
  EXPECT_EQ(endpoint.peers_heard(), 0);
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
  // A new communicator knows it from the start.
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
  EXPECT_EQ(members[0]->engine().endpoint().peers_heard(), 0);
}

TEST(Node, AMemberOfAnotherCommunicatorIsNoMemberOfThis) {
  Processes processes(3);
  const auto a = processes.join(5, {0, 1});
  processes.join(6, {0, 2});
  std::array<std::byte, wire::kPrefixBytes> probe{};
  wire::encode_bare({wire::PacketType::probe, 5, 1, 0, 1}, probe);
  processes[0].on_datagram(processes.now(), 2, probe);  // as if process 2 were rank 1 of a
  EXPECT_EQ(processes[0].refused()[static_cast<int>(wire::Refusal::misrouted)], 1u);
  EXPECT_EQ(a[0]->engine().endpoint().peers_heard(), 0);
}

TEST(Lobby, KeepsTheLatest) {
  Lobby lobby;
  std::vector<std::byte> datagram(1);
  for (std::size_t i = 0; i < Lobby::kPlaces + 10; ++i) {
    datagram[0] = static_cast<std::byte>(i);
    const auto from = static_cast<Rank>(i % 3);
    const auto epoch = static_cast<std::uint32_t>(i % 2);
    const auto dropped = lobby.put({wire::PacketType::data, epoch}, from, datagram);
    ASSERT_EQ(dropped.has_value(), i >= Lobby::kPlaces);
    if (!dropped) continue;
    EXPECT_EQ(dropped->slot, static_cast<Rank>((i - Lobby::kPlaces) % 3));
    EXPECT_EQ(dropped->epoch, (i - Lobby::kPlaces) % 2);
  }
  std::vector<int> kept;
  lobby.take(0, [&](Rank, ByteSpan bytes) { kept.push_back(static_cast<int>(bytes[0])); });
  EXPECT_EQ(kept.size(), Lobby::kPlaces / 2);
  EXPECT_EQ(kept.front(), 10);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  lobby.take(0, [&](Rank, ByteSpan) { FAIL() << "taken once"; });
}

TEST(Lobby, CopiesOfAGoodbyeDriveNothingOut) {
  Lobby lobby;
  std::vector<std::byte> datagram(1);
  lobby.put({wire::PacketType::data, 7}, 1, datagram);
  for (std::size_t copy = 1; copy <= 2 * Lobby::kPlaces; ++copy) {
    datagram[0] = static_cast<std::byte>(copy);
    for (const Rank slot : {1, 2}) {
      const auto dropped = lobby.put({wire::PacketType::goodbye, 7}, slot, datagram);
      ASSERT_EQ(dropped.has_value(), copy > 1);
      if (dropped) {
        EXPECT_EQ(dropped->slot, slot);
      }
    }
    lobby.put({wire::PacketType::goodbye, 8}, 1, datagram);  // of another communicator
  }
  std::vector<std::pair<Rank, int>> kept;
  lobby.take(
      7, [&](Rank slot, ByteSpan bytes) { kept.emplace_back(slot, static_cast<int>(bytes[0])); });
  const auto latest = static_cast<int>(2 * Lobby::kPlaces);
  EXPECT_EQ(kept, (std::vector<std::pair<Rank, int>>{{1, 0}, {1, latest}, {2, latest}}));
}

// Of two processes in one all_reduce of 400 KB.
struct Paced {
  explicit Paced(const congestion::Settings& congestion) : Paced(congestion, congestion) {}
  Paced(const congestion::Settings& first, const congestion::Settings& second,
        std::size_t window = kWindow)
      : processes({first, second}) {
    processes.window = window;
    members = processes.join(7, {0, 1});
    begin();
  }
  void begin() {
    data.assign(2, std::vector<float>(100'000, 1.0f));
    requests.clear();
    for (Rank rank = 0; rank < 2; ++rank)
      requests.push_back(&processes.all_reduce(rank, *members[rank], data[rank]));
  }
  bool run(Duration limit = 10s) {
    return processes.run_until([&] { return requests[0]->done && requests[1]->done; }, limit);
  }
  bool right() const {
    return std::all_of(data.begin(), data.end(), [](const std::vector<float>& result) {
      return std::all_of(result.begin(), result.end(), [](float value) { return value == 2.0f; });
    });
  }

  Processes processes;
  std::vector<Member*> members;
  std::vector<std::vector<float>> data;
  std::vector<Request*> requests;
};

TEST(NodePacing, AFixedRateIsKeptInEveryMillisecond) {
  constexpr std::uint64_t kRate = 50'000'000;
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = kRate});
  std::deque<std::pair<Instant, std::size_t>> last;
  std::size_t bytes = 0;
  std::size_t most = 0;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    if (from != 0) return;
    const Instant now = paced.processes.now();
    last.emplace_back(now, datagram.size());
    bytes += datagram.size();
    for (; now - last.front().first >= 1ms; last.pop_front()) bytes -= last.front().second;
    most = std::max(most, bytes);
  };
  const Instant start = paced.processes.now();
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
  // Half of the tensor each way in each half: 416 KB from each, 67 ms.
  EXPECT_GT(paced.processes.now() - start, 66ms);
  EXPECT_LT(paced.processes.now() - start, 95ms);
  // A train of two datagrams, and what a late wake-up may catch up; control datagrams do not wait.
  EXPECT_LE(most, kRate / 8000 + 2 * 2 * 1472 + 500);
}

// Rank 0 is slow: while it sends its contributions, results of the first of them come back to where
// they lie. Results come by chunks, so what is lost must be of one of the last.
TEST(NodePacing, ParityIsOfWhatWasSentAlsoWhereResultsHaveTakenItsPlace) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 200'000'000},
              {.control = CongestionControl::fixed, .rate_bits_per_second = 8'000'000'000}, 256);
  const auto recovered = [&] { return paced.members[1]->engine().endpoint().counters().recovered; };
  int count = 0;
  bool any = true;  // may be lost, so that the links count as lossy
  paced.processes.loses = [&](ByteSpan datagram) {
    const auto header = testing::data_header_of(datagram);
    if (!header) return false;
    if (any) return ++count % 13 == 0;
    wire::Prefix prefix;
    (void)wire::peek_prefix(datagram, prefix);
    return prefix.source == 0 && header->kind == wire::FlowKind::reduce && header->attempt == 0 &&
           !header->is_parity() && header->position.value + 20 > header->flow_packets &&
           header->position.value % 7 == 0;
  };
  for (int call = 0; call < 6; ++call) {
    const std::uint64_t before = recovered();
    any = call < 4;
    ASSERT_TRUE(paced.run());
    ASSERT_TRUE(paced.right()) << "call " << call;
    EXPECT_GT(recovered(), before) << "call " << call;
    paced.processes.pass(10ms);
    paced.begin();
  }
}

// Else one rank gets ahead with results while everyone waits for its contributions.
TEST(NodePacing, ContributionsGoBeforeResults) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  std::array<int, 2> results{};
  std::array<int, 2> overtaken{};
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    wire::Prefix prefix;
    wire::DataHeader header;
    ByteSpan payload;
    ASSERT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    if (prefix.type != wire::PacketType::data) return;
    ASSERT_EQ(wire::decode_data(datagram, header, payload), wire::Refusal::none);
    if (header.kind == wire::FlowKind::spread) ++results[from];
    if (header.kind == wire::FlowKind::reduce && results[from] > 0) ++overtaken[from];
  };
  ASSERT_TRUE(paced.run());
  EXPECT_THAT(results, Each(Gt(0)));
  EXPECT_THAT(overtaken, Each(0));
}

TEST(NodePacing, TrainsAreAsLongAsAQuantum) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  std::size_t in_a_row = 0;
  Instant before{0};
  std::size_t longest = 0;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan) {
    if (from != 0) return;
    in_a_row = paced.processes.now() == before ? in_a_row + 1 : 1;
    before = paced.processes.now();
    longest = std::max(longest, in_a_row);
  };
  ASSERT_TRUE(paced.run());
  EXPECT_LE(longest, 6u);
}

TEST(NodePacing, EndsWhereDatagramsAndReportsAreLost) {
  for (const auto control : {CongestionControl::fixed, CongestionControl::scavenger,
                             CongestionControl::wan, CongestionControl::fabric}) {
    Paced paced({.control = control, .rate_bits_per_second = 50'000'000});
    int number = 0;
    paced.processes.loses = [&](ByteSpan) { return ++number % 7 == 0; };
    ASSERT_TRUE(paced.run()) << to_string(control);
    EXPECT_TRUE(paced.right()) << to_string(control);
  }
}

TEST(NodePacing, GoesOnAfterAllReportsOfASecondWereLost) {
  Paced paced({.control = CongestionControl::wan});
  const Instant from = paced.processes.now() + 2ms;
  paced.processes.loses = [&](ByteSpan) {
    return paced.processes.now() >= from && paced.processes.now() < from + 1s;
  };
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
}

// A group with far ranks joins a process whose other groups were not paced.
TEST(NodePacing, BeginsWhereMembersHaveSentAlready) {
  constexpr std::uint64_t kRate = 50'000'000;
  Paced paced({});
  ASSERT_TRUE(paced.run());
  const congestion::Settings fixed{.control = CongestionControl::fixed,
                                   .rate_bits_per_second = kRate};
  for (Rank slot = 0; slot < 2; ++slot) {
    Node& node = paced.processes[slot];
    EXPECT_FALSE(node.pace(paced.processes.now(), {}));
    EXPECT_EQ(node.uplink(), nullptr);
    EXPECT_TRUE(node.pace(paced.processes.now(), fixed));
    EXPECT_FALSE(node.pace(paced.processes.now(), {.control = CongestionControl::wan}));
  }
  paced.begin();
  const Instant start = paced.processes.now();
  ASSERT_TRUE(paced.run());
  EXPECT_TRUE(paced.right());
  EXPECT_GT(paced.processes.now() - start, 66ms);
  EXPECT_LT(paced.processes.now() - start, 95ms);
}

// WIRE 3.16
TEST(NodePacing, TellsThePeerWhatItsHostDropped) {
  Paced paced({.control = CongestionControl::fixed, .rate_bits_per_second = 50'000'000});
  int number = 0;
  std::uint64_t dropped = 0;
  paced.processes.loses = [&](ByteSpan datagram) {
    wire::Prefix prefix;
    const bool lost = wire::peek_prefix(datagram, prefix) == wire::Refusal::none &&
                      prefix.destination == 1 && ++number % 10 == 0;
    dropped += lost;
    return lost;
  };
  wire::Report told;
  paced.processes.observer = [&](Rank from, Rank, ByteSpan datagram) {
    wire::Report report;
    wire::Prefix prefix;
    if (from != 1 || wire::peek_prefix(datagram, prefix) != wire::Refusal::none ||
        prefix.type != wire::PacketType::report)
      return;
    ASSERT_EQ(wire::decode_report(datagram, report), wire::Refusal::none);
    told = report;
  };
  EXPECT_TRUE(paced.processes[1].wants_host_drops(paced.processes.now()));
  ASSERT_TRUE(paced.processes.run_until(
      [&] {
        const Instant now = paced.processes.now();
        if (paced.processes[1].wants_host_drops(now))
          paced.processes[1].on_host_drops(now, dropped, 100'000);
        return paced.requests[0]->done && paced.requests[1]->done;
      },
      10s));
  EXPECT_TRUE(paced.right());
  EXPECT_GT(dropped, 10u);
  EXPECT_LT(told.grant, 100'000u);
  EXPECT_GT(told.host_drops, dropped / 2);
  EXPECT_LE(told.host_drops, dropped);
}

TEST(NodePacing, WithoutAControllerNobodyAsksForHostDrops) {
  Paced paced({});
  EXPECT_FALSE(paced.processes[0].wants_host_drops(Instant::infinite_future() - 1ns));
}

TEST(NodePacing, WithoutAControllerNothingAsksForReports) {
  Paced paced({});
  bool asks = false;
  paced.processes.observer = [&](Rank, Rank, ByteSpan datagram) {
    wire::Prefix prefix;
    ASSERT_EQ(wire::peek_prefix(datagram, prefix), wire::Refusal::none);
    asks |= prefix.asks;
  };
  ASSERT_TRUE(paced.run());
  EXPECT_FALSE(asks);
}

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

  // How long it takes.
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
  std::size_t bytes(Rank from, Rank to) { return processes[from].path(to).size.bytes(); }

  std::size_t carries = 9000;
  std::size_t lost = 0;
  Processes processes;
  std::vector<Member*> members;
};

// W-15
TEST_F(NodeSizes, APathThatBecomesNarrowCarriesDatagramsInPieces) {
  all_reduce();
  const Duration normal = all_reduce();
  EXPECT_EQ(bytes(0, 1), 1472u);
  // Before the first report of a path it is not known to carry more than the base.
  const std::uint64_t cut_at_first = processes[0].size_counters().datagrams_cut;
  const std::uint64_t cut_at_first_by_2 = processes[2].size_counters().datagrams_cut;
  carries = 1272;
  all_reduce();
  EXPECT_EQ(bytes(0, 1), 1200u);
  EXPECT_EQ(bytes(0, 2), 1472u);
  EXPECT_EQ(bytes(1, 0), 1472u) << "the other direction";
  processes.pass(1s);  // the search is over
  const std::size_t lost_before = lost;
  EXPECT_LT(all_reduce(), normal + normal / 4);
  EXPECT_EQ(lost, lost_before) << "nothing that is too long is sent";
  EXPECT_GT(processes[0].size_counters().datagrams_cut, cut_at_first + 50);
  EXPECT_EQ(processes[2].size_counters().datagrams_cut, cut_at_first_by_2);
  carries = 9000;
  processes.pass(601s);
  EXPECT_EQ(bytes(0, 1), 1472u);
}

TEST_F(NodeSizes, RanksAgreeOnWhatAllPathsCarry) {  // WIRE 10.4
  carries = 1410;
  const auto agreed = [&] {
    return std::all_of(members.begin(), members.end(),
                       [](const Member* member) { return member->agreed_bytes().has_value(); });
  };
  for (int i = 0; i < 100 && !agreed(); ++i) {
    for (Rank slot = 0; slot < 3; ++slot) {
      if (!processes[slot].agree_on_size(*members[slot], /*measured=*/true))
        members[slot]->engine().endpoint().probe_all();
      processes[slot].touch(*members[slot]);
    }
    processes.pass(1ms);
  }
  ASSERT_TRUE(agreed());
  for (Member* const member : members) {
    EXPECT_EQ(member->agreed_bytes(), 1400u);
    member->engine().endpoint().shorten_datagrams(1400);
  }
  const std::size_t lost_before = lost;
  all_reduce();
  EXPECT_EQ(lost, lost_before);
  EXPECT_EQ(processes[0].size_counters().datagrams_cut, 0u);
}

TEST_F(NodeSizes, WhatTheSystemRefusesForOnePeerHurtsNoOther) {
  all_reduce();
  EXPECT_EQ(bytes(0, 1), 1472u);
  carries = 1272;
  processes[0].on_refused(processes.now(), 1, 1472);
  EXPECT_EQ(bytes(0, 1), 1200u);
  EXPECT_EQ(bytes(0, 2), 1472u);
  all_reduce();
  processes.pass(1s);
  EXPECT_EQ(processes[0].size_counters().probes_sent, 2u + 3 * 3u) << "and it is searched at once";
}

TEST_F(NodeSizes, AnUnknownProcessIsNotAnswered) {
  std::array<std::byte, 1000> probe{};
  wire::encode_size({.type = wire::PacketType::size, .epoch = 1, .source = 7, .destination = 0},
                    {.bytes = 1000}, probe);
  processes[0].on_datagram(processes.now(), 7, probe);
  EXPECT_EQ(processes[0].refused()[static_cast<int>(wire::Refusal::epoch)], 1u);
}

}  // namespace
}  // namespace leeway::collective
