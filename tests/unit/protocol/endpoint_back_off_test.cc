// How long an endpoint waits before it says or asks something again.
#include <gtest/gtest.h>

#include <vector>

#include "support/datagram_view.h"
#include "support/engine_group.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using testing::type_of;

// A path known to lose much carries copies of every END, which fail or arrive together.
TEST(EndpointBackOff, CopiesOfAnEndAreOneTry) {
  GroupOptions options{.size = 2};
  options.faults.loss = 0.3;
  EngineGroup group(options);
  for (int i = 0; i < 5; ++i) {  // to learn that the path is lossy
    FloatAllReduce call(2, 20000);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
  }
  ASSERT_TRUE(group.settle());

  std::vector<Instant> ends;
  group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    if (from == 0 && type_of(datagram) == wire::PacketType::end) ends.push_back(group.now());
    return false;
  };
  FloatAllReduce call(2, 1000);
  call.submit_all(group);
  EXPECT_FALSE(group.run(call.requests(), 50ms));
  ASSERT_GE(ends.size(), 12u);
  for (std::size_t copy = 1; copy < ends.size(); ++copy) {
    if (copy % 3 == 0) continue;
    EXPECT_EQ(ends[copy], ends[copy - 1]) << copy;
  }
  const Duration first = ends[3] - ends[0];
  EXPECT_EQ(ends[6] - ends[3], 2 * first);
  EXPECT_EQ(ends[9] - ends[6], 4 * first);
}

// What was doubled while round trips were taken for short must not be doubled again once they are
// known: a round would last longer than its deadline.
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

// A path that carries short datagrams only answers each request with an END at once. Without
// patience the requests follow each other every round trip, and use up their numbers.
TEST(EndpointBackOff, RequestsOfWhichNothingComesBecomeRare) {
  EngineGroup group(GroupOptions{.size = 2, .delay = 10us});
  bool narrow = true;
  int requests = 0;
  group.filter = [&](Rank, Rank, ByteSpan datagram) {
    requests += type_of(datagram) == wire::PacketType::repair;
    return !narrow || type_of(datagram) != wire::PacketType::data;
  };
  FloatAllReduce call(2, 100);
  call.submit_all(group);
  EXPECT_FALSE(group.run(call.requests(), 1s));
  EXPECT_GE(requests, 2 * 8);    // each rank's first ones come at once
  EXPECT_LE(requests, 2 * 100);  // of 2 * 50,000 round trips
  narrow = false;
  EXPECT_TRUE(call.finish(group));
}

}  // namespace
}  // namespace leeway::protocol
