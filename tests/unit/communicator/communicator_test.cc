// The public interface over in-process transports: threads, asynchronous work, life cycle. What
// operations compute is tested without threads in tests/unit/collective.
#include "leeway/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

using Group = std::vector<std::unique_ptr<Communicator>>;

Group make_group(int size, const Options& options = {}) {
  auto group = Communicator::create_inproc(size, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  return std::move(*group);
}

template <typename Body>
void on_all(Group& group, Body&& body) {
  std::vector<std::thread> threads;
  for (auto& communicator : group)
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  for (auto& thread : threads) thread.join();
}

TEST(CommunicatorInproc, RanksAndSizesAreAsAsked) {
  Group group = make_group(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(group[i]->rank(), i);
    EXPECT_EQ(group[i]->size(), 3);
  }
}

TEST(CommunicatorInproc, SizeZeroIsRefused) {
  const auto group = Communicator::create_inproc(0);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorInproc, FaultsOutOfRangeAreRefused) {
  Options options;
  options.faults.loss = 1.5;
  const auto group = Communicator::create_inproc(2, options);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorInproc, AFixedPaceWithoutARateIsRefused) {
  Options options;
  options.congestion = CongestionControl::fixed;
  const auto group = Communicator::create_inproc(2, options);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(group.status().text(), ::testing::HasSubstr("LEEWAY_RATE"));
}

TEST(CommunicatorBlocking, AllReduceSumsOnEveryRank) {
  Group group = make_group(4);
  on_all(group, [](Communicator& communicator) {
    std::vector<float> data(50'000, static_cast<float>(communicator.rank() + 1));
    const auto report = communicator.all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_THAT(data, Each(10.0f));
    EXPECT_TRUE(report->complete);
    EXPECT_EQ(report->peers.size(), 3u);
  });
}

TEST(CommunicatorBlocking, ManyOperationsInARowStayInStep) {
  Options options;
  options.faults.loss = 0.05;
  Group group = make_group(3, options);
  on_all(group, [](Communicator& communicator) {
    for (int i = 0; i < 300; ++i) {
      std::vector<std::int32_t> data(64, i + communicator.rank());
      ASSERT_TRUE(communicator.all_reduce(std::span(data)).ok());
      ASSERT_THAT(data, Each(3 * i + 3)) << "operation " << i;
    }
  });
}

TEST(CommunicatorAsync, SeveralOperationsAreInFlight) {
  Group group = make_group(4);
  on_all(group, [](Communicator& communicator) {
    constexpr int kInFlight = 40;  // more than limits::kOpenCollectivesMax: the rest queues
    std::vector<std::vector<float>> data;
    std::vector<Work> works;
    for (int i = 0; i < kInFlight; ++i) data.emplace_back(1000 + i, static_cast<float>(i));
    for (auto& tensor : data) works.push_back(communicator.all_reduce_async(std::span(tensor)));
    for (int i = kInFlight; i-- > 0;) {
      const auto report = works[i].wait();
      ASSERT_TRUE(report.ok()) << report.status().text();
      EXPECT_THAT(data[i], Each(4.0f * i));
      EXPECT_TRUE(works[i].done());
    }
  });
}

TEST(CommunicatorAsync, AnyNumberOfMessagesMayBePostedInAnyOrder) {
  Group group = make_group(2);
  on_all(group, [](Communicator& communicator) {
    const Rank peer = 1 - communicator.rank();
    constexpr int kMessages = 64;
    std::vector<std::vector<float>> out, in(kMessages, std::vector<float>(5000));
    for (int i = 0; i < kMessages; ++i) out.emplace_back(5000, static_cast<float>(i));
    std::vector<Work> works;
    for (auto& tensor : in) works.push_back(communicator.recv_async(std::span(tensor), peer));
    std::vector<float> sum(1000, 1.0f);
    ASSERT_TRUE(communicator.all_reduce(std::span(sum)).ok()) << "waits behind posted receives";
    for (const auto& tensor : out)
      works.push_back(communicator.send_async(std::span<const float>(tensor), peer));
    for (Work& work : works) {
      const auto outcome = work.wait();
      ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    }
    EXPECT_EQ(in, out);
  });
}

TEST(CommunicatorAsync, FinishesWhileNobodyWaits) {
  Group group = make_group(2);
  std::vector<float> a(1000, 1.0f);
  std::vector<float> b(1000, 2.0f);
  Work first = group[0]->all_reduce_async(std::span(a));
  Work second = group[1]->all_reduce_async(std::span(b));
  // Background threads drive the calls meanwhile.
  while (!first.done() || !second.done()) std::this_thread::yield();
  EXPECT_THAT(a, Each(3.0f));
  EXPECT_THAT(b, Each(3.0f));
}

TEST(CommunicatorAsync, AnEmptyHandleSaysSo) {
  Work work;
  EXPECT_FALSE(work.valid());
  EXPECT_FALSE(work.done());
  const auto outcome = work.wait();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), StatusCode::kInvalidArgument);
}

TEST(CommunicatorThreads, TwoThreadsOfARankWaitForDifferentOperations) {
  Group group = make_group(2);
  on_all(group, [](Communicator& communicator) {
    const Rank peer = 1 - communicator.rank();
    std::vector<float> out(20'000, 3.0f);
    std::vector<float> in(20'000);
    std::thread receiver([&] { ASSERT_TRUE(communicator.recv(std::span(in), peer).ok()); });
    ASSERT_TRUE(communicator.send(std::span<const float>(out), peer).ok());
    receiver.join();
    EXPECT_THAT(in, Each(3.0f));
  });
}

TEST(CommunicatorThreads, TwoCommunicatorsOfAProcessAreIndependent) {
  Group one = make_group(2);
  Group two = make_group(2);
  std::thread other([&] {
    on_all(two, [](Communicator& communicator) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(communicator.barrier().ok());
    });
  });
  on_all(one, [](Communicator& communicator) {
    for (int i = 0; i < 100; ++i) {
      std::vector<double> data(100, 1.0);
      ASSERT_TRUE(communicator.all_reduce(std::span(data)).ok());
      ASSERT_THAT(data, Each(2.0));
    }
  });
  other.join();
}

TEST(CommunicatorErrors, BadArgumentsAreRefusedBeforeAnythingIsSent) {
  Group group = make_group(2);
  std::vector<float> three(3);
  std::vector<float> four(4);
  const auto sizes = group[0]->all_reduce(std::span<const float>(three), std::span(four));
  ASSERT_FALSE(sizes.ok());
  EXPECT_EQ(sizes.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sizes.status().text()), HasSubstr("3"));
  const auto rank = group[0]->broadcast(std::span(four), 2);
  ASSERT_FALSE(rank.ok());
  EXPECT_THAT(std::string(rank.status().text()), HasSubstr("rank 2 does not exist"));
  std::vector<std::int32_t> integers(4);
  CollectiveOptions lossy;
  lossy.delivery = best_effort(10ms);
  const auto meaningless = group[0]->all_reduce(std::span(integers), lossy);
  ASSERT_FALSE(meaningless.ok());
  EXPECT_EQ(meaningless.status().code(), StatusCode::kUnsupported);
}

TEST(CommunicatorErrors, ADeadlineNamesRankOperationPeerAndTime) {
  Group group = make_group(3);
  std::vector<float> data(10'000, 1.0f);
  CollectiveOptions options;
  options.delivery = exact(30ms);
  const auto report = group[1]->all_reduce(std::span(data), options);  // nobody else calls
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kDeadlineExceeded);
  const std::string text(report.status().text());
  EXPECT_THAT(text, HasSubstr("rank 1: all_reduce #0"));
  EXPECT_THAT(text, HasSubstr("30 ms"));
  EXPECT_THAT(text, ::testing::AnyOf(HasSubstr("from rank 0"), HasSubstr("from rank 2")));
}

TEST(CommunicatorErrors, ALossyCallReturnsByItsDeadlineWithWhatItHas) {
  Group group = make_group(2);
  std::vector<float> data(10'000, 1.0f);
  CollectiveOptions options;
  options.op = ReduceOp::avg;
  options.delivery = best_effort(30ms);
  const Status broken = group[0]->all_reduce(std::span(data), options).status();
  EXPECT_EQ(broken.code(), StatusCode::kDeadlineExceeded) << "spread exact promises all";
  EXPECT_THAT(broken.c_str(), HasSubstr("of 10000 elements of the result did not come"));
  options.spread = Delivery::Kind::best_effort;
  const auto report = group[0]->all_reduce(std::span(data), options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->deadline_cut);
  EXPECT_FALSE(report->complete);
  EXPECT_GT(report->elements_missing, 0u);
  EXPECT_EQ(report->loss, 1.0);
}

TEST(CommunicatorLife, AClosedPeerFailsExactOperationsAtOnceAndByName) {
  Group group = make_group(2);
  group[1].reset();
  std::vector<float> data(10'000, 1.0f);
  const auto report = group[0]->all_reduce(std::span(data));  // deadline: a minute
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kPeerLost);
  EXPECT_THAT(std::string(report.status().text()), HasSubstr("rank 1"));
}

TEST(CommunicatorLife, ClosingCancelsWhatIsInFlight) {
  Group group = make_group(2);
  std::vector<float> data(10'000, 1.0f);
  Work work = group[0]->all_reduce_async(std::span(data));
  group[0].reset();
  EXPECT_TRUE(work.done());
  const auto outcome = work.wait();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), StatusCode::kCancelled);
}

// Returns the rank's counter `name`.
std::uint64_t counter(const Communicator& communicator, std::string_view name) {
  for (const auto& [key, count] : communicator.counters()) {
    if (key == name) return count;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

TEST(CommunicatorMulticast, SendsTheSpreadHalfOnceWhereItIsAskedFor) {
  for (const bool multicast : {false, true}) {
    Options options;
    options.multicast = multicast;
    Group group = make_group(4, options);
    on_all(group, [](Communicator& communicator) {
      std::vector<float> data(200'000, 1.0f);
      ASSERT_TRUE(communicator.all_reduce(std::span(data)).ok());
      EXPECT_THAT(data, Each(4.0f));
    });
    for (const auto& communicator : group)
      EXPECT_EQ(counter(*communicator, "group_sent") > 0, multicast);
  }
}

TEST(CommunicatorCounters, CountWhatHappened) {
  Options options;
  options.faults.loss = 0.2;
  Group group = make_group(2, options);
  on_all(group, [](Communicator& communicator) {
    std::vector<float> data(200'000, 1.0f);
    ASSERT_TRUE(communicator.all_reduce(std::span(data)).ok());
  });
  const auto value = [&](std::string_view name) { return counter(*group[0], name); };
  EXPECT_GT(value("repair_requests") + value("repairs_sent"), 0u);
  EXPECT_GT(value("injected_lost_data"), 0u);
  EXPECT_EQ(value("refused_checksum"), 0u);
}

}  // namespace
}  // namespace leeway
