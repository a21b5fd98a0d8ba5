#include "run/round_book.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

Instant at_ms(std::int64_t ms) {
  return {ms * 1'000'000};
}

void take_part(RoundBook& book, std::uint32_t rank, std::uint32_t round, std::int64_t submit_ms,
               std::int64_t end_ms) {
  book.on_begin(at_ms(submit_ms - 1), round);
  book.on_submit(at_ms(submit_ms), rank, round);
  book.on_call(rank, round,
               {.expected = 10,
                .arrived = 9,
                .arrived_first = 8,
                .bytes_sent = 100,
                .contributors_mean = 1.5,
                .contributors_min = rank});
  book.on_finish(at_ms(end_ms), rank, round);
}

TEST(RoundBook, ARoundIsCompleteWhenAllLiveRanksFinishedIt) {
  RoundBook book(3);
  std::uint32_t number = 99;
  take_part(book, 0, 0, 5, 10);
  take_part(book, 0, 1, 11, 12);  // one rank runs ahead
  take_part(book, 1, 0, 3, 20);
  EXPECT_FALSE(book.complete(number));
  take_part(book, 2, 0, 4, 15);
  ASSERT_TRUE(book.complete(number));
  EXPECT_EQ(number, 0u);
}

TEST(RoundBook, ADeadRankIsNotWaitedFor) {
  RoundBook book(2);
  std::uint32_t number = 99;
  take_part(book, 0, 0, 5, 10);
  EXPECT_FALSE(book.complete(number));
  book.on_death(1);
  EXPECT_TRUE(book.complete(number));
  EXPECT_EQ(book.close(0).live_ranks, 1u);
}

TEST(RoundBook, ARecordSpansFromTheFirstSubmissionToTheLastReturn) {
  RoundBook book(3);
  take_part(book, 0, 0, 5, 10);
  take_part(book, 1, 0, 3, 20);
  take_part(book, 2, 0, 4, 6);
  const RoundRecord& record = book.close(0);
  EXPECT_EQ(record.begin_ns, at_ms(2).ns);
  EXPECT_EQ(record.first_submit_ns, at_ms(3).ns);
  EXPECT_EQ(record.end_ns, at_ms(20).ns);
  EXPECT_EQ(record.call_ns_max, at_ms(17).ns);
  EXPECT_EQ(record.call_ns_median, at_ms(5).ns);
  EXPECT_EQ(record.expected, 30u);
  EXPECT_EQ(record.arrived, 27u);
  EXPECT_EQ(record.arrived_first, 24u);
  EXPECT_EQ(record.bytes_sent, 300u);
  EXPECT_DOUBLE_EQ(record.contributors_mean, 1.5);
  EXPECT_EQ(record.contributors_min, 0u);
}

TEST(RoundBook, AFailedCallCountsAndBringsNoContributors) {
  RoundBook book(1);
  book.on_begin(at_ms(0), 0);
  book.on_submit(at_ms(1), 0, 0);
  book.on_call(0, 0,
               {.status = Status::error(StatusCode::kDeadlineExceeded, "late"),
                .contributors_mean = 3,
                .deadline_cut = true});
  book.on_finish(at_ms(2), 0, 0);
  const RoundRecord& record = book.close(0);
  EXPECT_EQ(record.failed_calls, 1u);
  EXPECT_EQ(record.deadline_cuts, 1u);
  EXPECT_LT(record.contributors_mean, 0.0) << "not known";
  EXPECT_TRUE(book.call_ms().empty());
  EXPECT_EQ(book.rounds_done()[0], 0u);
}

TEST(RoundBook, KeepsABoundedNumberOfCallTimesEvenlyChosen) {
  RoundBook book(1);
  for (std::uint32_t round = 0; round < 3 * kCallsKept; ++round) {
    book.on_begin(at_ms(round), round);
    book.on_submit(at_ms(round), 0, round);
    book.on_finish(at_ms(2 * static_cast<std::int64_t>(round)), 0, round);  // takes `round` ms
    book.close(round);
  }
  const auto& times = book.call_ms();
  EXPECT_LT(times.size(), kCallsKept);
  EXPECT_GE(times.size(), kCallsKept / 2);
  for (std::size_t i = 2; i < times.size(); ++i)
    EXPECT_EQ(times[i] - times[i - 1], times[1] - times[0]);
}

}  // namespace
}  // namespace leeway::sim
