#include "observe/call_book.h"

#include <gtest/gtest.h>

namespace leeway::observe {
namespace {

using namespace std::chrono_literals;

collective::Request call_of(Duration took) {
  collective::Request request;
  request.spec.kind = collective::OperationKind::all_reduce;
  request.spec.options.delivery = best_effort(1s);
  request.report.times.total = took;
  request.report.peers = {{.rank = 1, .expected = 10, .arrived = 8}};
  request.report.contributors = {.min = 1, .mean = 1.8, .histogram = {0, 2, 8}};
  return request;
}

TEST(CallBook, CountsACallInTheBucketOfItsTime) {
  CallBook book;
  book.add("world", call_of(3ms));
  book.add("world", call_of(1000s));
  ASSERT_EQ(book.calls().size(), 1u);
  const Calls& calls = book.calls().front();
  EXPECT_EQ(calls.buckets[8], 1u);  // 2 to 5 ms
  EXPECT_EQ(calls.buckets.back(), 1u);
  EXPECT_EQ(calls.done, 2u);
  EXPECT_DOUBLE_EQ(calls.seconds, 1000.003);
}

TEST(CallBook, CountsWhatIsMissing) {
  CallBook book;
  book.add("world", call_of(3ms));
  EXPECT_EQ(book.calls().front().packets_expected, 10u);
  EXPECT_EQ(book.calls().front().packets_missing, 2u);
  EXPECT_TRUE(book.calls().front().reduced);
  EXPECT_DOUBLE_EQ(book.calls().front().contributors_mean, 1.8);
}

TEST(CallBook, CountsAnErrorAndNotItsTime) {
  CallBook book;
  collective::Request failed = call_of(3ms);
  failed.status = Status::error(StatusCode::kPeerLost, "gone");
  book.add("world", failed);
  EXPECT_EQ(book.calls().front().failed, 1u);
  EXPECT_EQ(book.calls().front().done, 0u);
}

TEST(CallBook, TellsCommunicatorsAndDeliveriesApart) {
  CallBook book;
  collective::Request exact = call_of(1ms);
  exact.spec.options.delivery = {};
  book.add("world", call_of(1ms));
  book.add("world", exact);
  book.add("pairs", exact);
  book.add("pairs", exact);
  ASSERT_EQ(book.calls().size(), 3u);
  EXPECT_EQ(book.calls()[2].done, 2u);
}

}  // namespace
}  // namespace leeway::observe
