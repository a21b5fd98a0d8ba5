// Tests how long an endpoint waits before it repeats a datagram or a question.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/datagram_view.h"
#include "support/engine_group.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using testing::type_of;

// On a lossy path an END has several copies. They are lost or arrive together, so they must count
// as one try.
TEST(EndpointBackOff, CopiesOfAnEndAreOneTry) {
  GroupOptions options{.size = 2};
  options.faults.loss = 0.3;
  EngineGroup group(options);
  for (int i = 0; i < 5; ++i) {  // until the rank knows that the path is lossy
    FloatAllReduce call(2, 20000);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
  }
  ASSERT_TRUE(group.settle());

  std::vector<Instant> tries;
  std::vector<int> copies;
  group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    if (from != 0 || type_of(datagram) != wire::PacketType::end) return false;
    if (tries.empty() || tries.back() != group.now()) {
      tries.push_back(group.now());
      copies.push_back(0);
    }
    ++copies.back();
    return false;
  };
  FloatAllReduce call(2, 1000);
  call.submit_all(group);
  EXPECT_FALSE(group.run(call.requests(), 50ms));
  ASSERT_GE(tries.size(), 5u);
  const Duration first = tries[1] - tries[0];
  EXPECT_EQ(tries[2] - tries[1], 2 * first);
  EXPECT_EQ(tries[3] - tries[2], 4 * first);
  copies.resize(5);
  EXPECT_EQ(copies, (std::vector{3, 3, 3, 3, 3})) << "the peer may be late";
}

// A burst of losses ends after a number of datagrams, here 40 requests or reports. With one
// datagram in each try and one try a second, it would last 36 s (requests) or 33 s (reports).
TEST(EndpointBackOff, ABurstDoesNotLastForAsManySecondsAsItHasDatagrams) {
  for (const auto type : {wire::PacketType::repair, wire::PacketType::report}) {
    EngineGroup group(GroupOptions{.size = 2, .delay = 10ms});
    int lost = 0;
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      if (from == 0 && type == wire::PacketType::repair && data_header_of(datagram))
        return data_header_of(datagram)->attempt > 0 || data_header_of(datagram)->index.value > 0;
      return from == 0 || type_of(datagram) != type || ++lost > 40;
    };
    FloatAllReduce call(2, 20000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group, 4s)) << static_cast<int>(type);
    EXPECT_GT(lost, 40);
  }
}

// Copies of control datagrams leave before data. On a slow line, they alone once exceeded the pace
// for ever.
TEST(EndpointBackOff, NoMoreCopiesPassDataThatWaitForThePace) {
  for (const bool waits : {false, true}) {
    EngineGroup group(GroupOptions{.size = 2, .delay = 10ms});
    if (waits) group.hold_data(0);
    std::map<std::int64_t, int> copies;  // number of reports and requests, by departure time
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      const auto type = type_of(datagram);
      if (from == 0 && type != wire::PacketType::data && type != wire::PacketType::probe)
        ++copies[group.now().ns];
      return from == 0 || type != wire::PacketType::data;
    };
    FloatAllReduce call(2, 20000);
    call.submit_all(group);
    EXPECT_FALSE(group.run(call.requests(), 5s));
    int most = 0;
    for (const auto& [at, count] : copies) most = std::max(most, count);
    if (waits) {
      EXPECT_LE(most, 2);
    } else {
      EXPECT_GE(most, 16);
    }
  }
}

// A time-out was doubled while round trips were believed to be short. It must not be doubled again
// once they are known; otherwise the call would outlast its deadline.
TEST(EndpointBackOff, DoesNotOutlastTheFirstRoundsOfALongPath) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    GroupOptions options{.size = 4, .delay = 250ms, .seed = seed};
    options.faults.loss = 0.2;
    options.faults.seed = seed;
    EngineGroup group(options);
    FloatAllReduce call(4, 2000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group, 20s)) << "seed " << seed;
  }
}

// A path that carries only short datagrams answers each request with an END at once. Without a
// back-off, requests would follow every round trip and use up their numbers.
TEST(EndpointBackOff, RequestsOfWhichNothingComesBecomeRare) {
  EngineGroup group(GroupOptions{.size = 2, .delay = 10us});
  bool narrow = true;
  std::set<std::int64_t> requests;
  group.filter = [&](Rank, Rank, ByteSpan datagram) {
    if (type_of(datagram) == wire::PacketType::repair) requests.insert(group.now().ns);
    return !narrow || type_of(datagram) != wire::PacketType::data;
  };
  FloatAllReduce call(2, 100);
  call.submit_all(group);
  EXPECT_FALSE(group.run(call.requests(), 1s));
  EXPECT_GE(requests.size(), 8u);    // the first ones come at once
  EXPECT_LE(requests.size(), 200u);  // in 2 * 50,000 round trips
  narrow = false;
  EXPECT_TRUE(call.finish(group));
}

}  // namespace
}  // namespace leeway::protocol
