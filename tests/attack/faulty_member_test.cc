// A member with the right keys that breaks the protocol, in virtual time. The other members must
// end each lossy call within a tick of its deadline, with finite results, and send the faulty
// member a bounded number of datagrams.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "attack/forgeries.h"

namespace leeway::attack {
namespace {

using namespace std::chrono_literals;

constexpr int kFaultyJob = 4;
constexpr Rank kFaulty = 3;
constexpr std::size_t kFaultyElements = 30'000;
constexpr Duration kFaultyDeadline = 60ms;
constexpr Duration kTick = 1ms;

// Three honest members and a faulty one make one lossy call after the other.
class FaultyMember : public ::testing::Test {
 protected:
  // Makes one call, and checks the promises to the honest members.
  void expect_call(Delivery delivery = best_effort(kFaultyDeadline)) {
    sums_.push_back(std::make_unique<Sums>(kFaultyJob, kFaultyElements, delivery));
    Sums& sums = *sums_.back();
    if (spoil) spoil(sums.contribution(kFaulty));
    std::vector<collective::Request*> requests;
    const Instant began = job.now();
    for (Rank rank = 0; rank < kFaultyJob; ++rank) {
      collective::Request& request = sums.submit(job, rank);
      if (rank != kFaulty) requests.push_back(&request);
    }
    const bool done = job.run_until(
        [&] {
          return std::all_of(requests.begin(), requests.end(), [](auto* one) { return one->done; });
        },
        kFaultyDeadline + kTick);
    ASSERT_TRUE(done) << "later than the deadline and a tick";
    took = job.now() - began;
    for (Rank rank = 0; rank < kFaulty; ++rank) {
      EXPECT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.c_str();
      const auto& result = sums.result(rank);
      const bool finite =
          std::all_of(result.begin(), result.end(), [](float x) { return std::isfinite(x); });
      EXPECT_TRUE(finite) << "rank " << rank;
      non_finite += requests[rank]->report.non_finite;
    }
    job.pass(20ms);
  }
  void expect_calls(int count) {
    for (int i = 0; i < count; ++i) expect_call();
  }

  // Makes the faulty member send what `also` returns before each of its datagrams.
  void says(std::function<Bytes(Rank to, const Bytes& plain)> also) {
    job.betrayal = [also = std::move(also)](Rank from, Rank to, const Bytes& plain) {
      std::vector<Bytes> all = {plain};
      if (from == kFaulty) all.insert(all.begin(), also(to, plain));
      return all;
    };
  }
  // Makes the faulty member send what `instead` returns in place of each of its datagrams.
  void says_instead(std::function<Bytes(Rank to, Bytes plain)> instead) {
    job.betrayal = [instead = std::move(instead)](Rank from, Rank to, const Bytes& plain) {
      if (from != kFaulty) return std::vector<Bytes>{plain};
      Bytes said = instead(to, plain);
      return said.empty() ? std::vector<Bytes>{} : std::vector<Bytes>{std::move(said)};
    };
  }

  SealedJob job{{.size = kFaultyJob}};
  std::function<void(std::vector<float>&)> spoil;
  Duration took{0};
  std::uint64_t non_finite = 0;  // values that the honest members left out

 private:
  std::vector<std::unique_ptr<Sums>> sums_;  // read until confirmed
};

// Returns the header of a data datagram, or nullopt for other datagrams.
std::optional<wire::DataHeader> header_of(const Bytes& plain, wire::Prefix& prefix) {
  wire::DataHeader header;
  ByteSpan payload;
  if (wire::decode_prefix(plain, nullptr, prefix) != wire::Refusal::none ||
      prefix.type != wire::PacketType::data ||
      wire::decode_data(plain, header, payload) != wire::Refusal::none)
    return std::nullopt;
  return header;
}

// Changes the header of a data datagram. Other datagrams stay as they are.
Bytes with_header(Bytes plain, const std::function<void(wire::DataHeader&)>& change) {
  wire::Prefix prefix;
  auto header = header_of(plain, prefix);
  if (!header) return plain;
  change(*header);
  wire::encode_data(prefix, *header, 0, MutableByteSpan(plain).first(wire::kDataHeaderBytes));
  return plain;
}

// ---- numbers ----

// Each contribution is finite, but the sum is not.
TEST_F(FaultyMember, LargestNumbersReachNoResultAsInfinity) {
  spoil = [](std::vector<float>& mine) {
    std::fill(mine.begin(), mine.end(), std::numeric_limits<float>::max());
  };
  expect_calls(3);
}

// Contributions that contain infinities or NaNs count as lost.
TEST_F(FaultyMember, NumbersThatAreNoneReachNoResult) {
  spoil = [](std::vector<float>& mine) {
    for (std::size_t i = 0; i < mine.size(); i += 50) mine[i] = i % 100 == 0 ? NAN : -INFINITY;
  };
  expect_calls(3);
  EXPECT_GT(non_finite, 0u);
}

class FaultyWeight : public FaultyMember, public ::testing::WithParamInterface<float> {};

TEST_P(FaultyWeight, DoesNoHarm) {
  says_instead([](Rank, Bytes plain) {
    return with_header(std::move(plain),
                       [](wire::DataHeader& header) { header.weight = GetParam(); });
  });
  expect_calls(3);
  const float weight = GetParam();
  const bool refused = !(weight == 0.0f || (weight >= 0x1p-64f && weight <= 0x1p64f));
  EXPECT_EQ(job.counters(0).refused[static_cast<int>(wire::Refusal::field)] > 0, refused);
}

INSTANTIATE_TEST_SUITE_P(Each, FaultyWeight,
                         ::testing::Values(0.0f, -1.0f, 0x1p-64f, 0x1p64f, 0x1p65f, 3e38f, 1e-38f,
                                           1e-45f, INFINITY,
                                           std::numeric_limits<float>::quiet_NaN()));

// ---- false claims in its datagrams ----

class FaultyClaim : public FaultyMember, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(FaultyClaim, EndsNobodysCalls) {
  std::uint32_t round = 0;
  says([&round](Rank to, const Bytes&) {
    return forgeries(77, kFaulty, to, round)[GetParam()].plain;
  });
  for (; round < 4; ++round) expect_call();
}

// The faulty member claims false numbers only during the first call. Later calls must succeed.
TEST_P(FaultyClaim, DoesNotOutliveIt) {
  says([](Rank to, const Bytes&) { return forgeries(77, kFaulty, to, 0)[GetParam()].plain; });
  expect_call();
  job.betrayal = nullptr;
  expect_calls(3);
}

INSTANTIATE_TEST_SUITE_P(Each, FaultyClaim,
                         ::testing::Range<std::size_t>(0, forgeries(77, 0, 1, 0).size()));

// A peer's claim to have opened or settled later rounds may end an exact call. These numbers are
// farther ahead than any rank can be (limits::kRoundsAheadMax), so receivers must refuse them.
TEST_F(FaultyMember, NumbersThatJumpEndNoExactCall) {
  constexpr std::uint32_t kFar = 3 * limits::kRoundsAheadMax;
  wire::DataHeader opens{.round = 9, .flow_packets = 4};
  opens.opened_below = kFar;
  wire::DataHeader settles{.round = 9, .flow_packets = 4};
  settles.settled_below = kFar;
  wire::Report report;
  report.opened_below = kFar;
  for (const int what : {0, 1, 2}) {
    says([&](Rank, const Bytes& plain) {
      wire::Prefix prefix;  // a position that the datagram may have now
      (void)wire::decode_prefix(plain, nullptr, prefix);
      prefix.type = what == 2 ? wire::PacketType::report : wire::PacketType::data;
      if (what < 2) return data_of(prefix, what == 0 ? opens : settles, 8);
      return encoded([&](MutableByteSpan out) { return wire::encode_report(prefix, report, out); });
    });
    const std::uint64_t refused = job.counters(0).refused_progress;
    expect_call(exact());
    EXPECT_GT(job.counters(0).refused_progress, refused) << what;
  }
}

TEST_F(FaultyMember, RandomDatagramsEndNobodysCalls) {
  std::mt19937 random(23);
  says([&random](Rank to, const Bytes& plain) {
    Bytes junk = plain;
    for (int i = 0; i < 6; ++i)
      junk[random() % std::min<std::size_t>(junk.size(), 70)] = std::byte(random());
    (void)to;
    return junk;
  });
  expect_calls(6);
}

// Random fields of data headers. The datagrams have a right checksum and seal, so receivers read
// all fields.
TEST_F(FaultyMember, RandomFieldsEndNobodysCalls) {
  std::mt19937 random(29);
  says_instead([&random](Rank, Bytes plain) {
    return with_header(std::move(plain), [&](wire::DataHeader& header) {
      switch (random() % 6) {
        case 0:
          header.round = random();
          break;
        case 1:
          header.flow_packets = 1 + random() % 4'000'000;
          break;
        case 2:
          header.index = {static_cast<std::uint32_t>(random() % 100)};
          break;
        case 3:
          header.opened_below = random();
          break;
        case 4:
          header.settled_below = random();
          break;
        default:
          header.attempt = static_cast<std::uint16_t>(random());
          break;
      }
      header.flow_packets = std::max(header.flow_packets, header.index.value + 1);
    });
  });
  expect_calls(6);
}

// ---- datagrams that the faulty member makes others send ----

// Returns a datagram of the faulty member without what it says about rounds that it has settled.
Bytes unsettled(Bytes plain) {
  wire::Prefix prefix;
  wire::Report report;
  if (wire::decode_prefix(plain, nullptr, prefix) != wire::Refusal::none) return plain;
  if (prefix.type == wire::PacketType::data)
    return with_header(std::move(plain), [](auto& header) { header.settled_below = 0; });
  if (prefix.type != wire::PacketType::report ||
      wire::decode_report(plain, report) != wire::Refusal::none)
    return plain;
  report.opened_below = 0;
  for (wire::OpenRound& round : report.open) round.reduce_settled = round.spread_settled = false;
  plain.resize(wire::encode_report(prefix, report, plain));
  return plain;
}

// With each of its datagrams the faulty member sends member 0 three repair requests for the same
// packets. It never confirms data. A packet is sent again four times (kRepairsPerPacket); then each
// request gets at most one packet.
TEST_F(FaultyMember, RepairRequestsAreAnsweredFourTimesAndThenOneByOne) {
  constexpr std::uint32_t kPackets = 56;  // length of the flow from a member to the faulty one
  std::uint16_t requests = 0;
  job.betrayal = [&](Rank from, Rank to, const Bytes& plain) {
    if (from != kFaulty || to != 0) return std::vector<Bytes>{plain};
    const wire::Prefix prefix{wire::PacketType::repair, 77, kFaulty, to, 1000};
    std::vector<Bytes> all = {unsettled(plain)};
    for (int i = 0; i < 3; ++i)
      all.push_back(repair_of(prefix, {.attempt = ++requests, .words = 1}));
    return all;
  };
  expect_call(bounded(0.0, kFaultyDeadline));
  EXPECT_GT(job.counters(0).repairs_sent, limits::kRepairsPerPacket * kPackets) << "else no attack";
  EXPECT_LE(job.counters(0).repairs_sent, limits::kRepairsPerPacket * kPackets + requests);
}

TEST_F(FaultyMember, ProbesAreAnsweredEightTimesARoundTrip) {
  expect_call();
  const std::uint64_t before = job.counters(0).reports_sent;
  for (int i = 0; i < 1000; ++i) {
    job.say(kFaulty, 0, bare(wire::PacketType::probe, 77, kFaulty, 0, 1000));
    job.pass(10us);
  }
  job.pass(20ms);
  constexpr int kRoundTrips = 1000 * 10us / (2 * SealedJob::kOneWay);
  EXPECT_LE(job.counters(0).reports_sent - before,
            (kRoundTrips + 1) * limits::kProbeAnswersPerRoundTrip);
}

// ---- silence ----

TEST_F(FaultyMember, SilenceCostsTheDeadline) {
  says_instead([](Rank, const Bytes&) { return Bytes(); });
  expect_calls(3);
}

TEST_F(FaultyMember, SilenceToOneMemberOnlyCostsTheDeadline) {
  says_instead([](Rank to, Bytes plain) { return to == 0 ? Bytes() : plain; });
  expect_calls(3);
}

// The faulty member is alive and takes part in the protocol, but sends no data.
TEST_F(FaultyMember, DataHeldBackCostTheDeadline) {
  says_instead([](Rank, Bytes plain) {
    wire::Prefix prefix;
    return header_of(plain, prefix) ? Bytes() : plain;
  });
  expect_calls(3);
}

// After the peer time-out the others give the silent member up. Their exact calls end with an error
// that names it.
TEST_F(FaultyMember, SilenceEndsExactCallsByThePeerTimeout) {
  says_instead([](Rank, const Bytes&) { return Bytes(); });
  Sums sums(kFaultyJob, kFaultyElements, exact());
  std::vector<collective::Request*> requests;
  for (Rank rank = 0; rank < kFaultyJob; ++rank) requests.push_back(&sums.submit(job, rank));
  requests.pop_back();
  ASSERT_TRUE(job.run_until(
      [&] {
        return std::all_of(requests.begin(), requests.end(), [](auto* one) { return one->done; });
      },
      3500ms));
  for (auto* request : requests) EXPECT_FALSE(request->status.ok());
  job.pass(5s);
}

}  // namespace
}  // namespace leeway::attack
