// Tests uneven blocks and operations in place as programs call them.
#include "leeway/shapes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "leeway/communicator.h"

namespace leeway {
namespace {

using Group = std::vector<std::unique_ptr<Communicator>>;

template <typename Body>
void on_all(int size, Body&& body) {
  auto group = Communicator::create_inproc(size);
  ASSERT_TRUE(group.ok()) << group.status().text();
  std::vector<std::thread> threads;
  for (auto& communicator : *group)
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  for (auto& thread : threads) thread.join();
}

// Rank r has r elements, all of them r.
TEST(Shapes, UnevenBlocksAreGatheredAndReduced) {
  on_all(4, [](Communicator& communicator) {
    const Rank self = communicator.rank();
    const std::vector<std::size_t> counts = {0, 1, 2, 3};
    std::vector<int> all(6), own(self, self), sum(self);
    ASSERT_TRUE(communicator.all_gather(std::span(own), std::span(all), Blocks(counts)).ok());
    EXPECT_EQ(all, (std::vector<int>{1, 2, 2, 3, 3, 3}));
    const auto gathered =
        communicator.all_gather_async(std::span(own), std::span(all), Blocks(counts), {}).wait();
    EXPECT_TRUE(gathered.ok());
    ASSERT_TRUE(communicator.reduce_scatter(std::span(all), Blocks(counts), std::span(sum)).ok());
    EXPECT_EQ(sum, std::vector<int>(self, 4 * self));
  });
}

TEST(Shapes, CountsAreCopiedAtTheCall) {
  on_all(3, [](Communicator& communicator) {
    std::vector<int> in(6, communicator.rank()), out(6, -1);
    std::vector<std::size_t> counts = {1, 2, 3};
    std::vector<std::size_t> receives(3, counts[communicator.rank()]);
    std::vector<std::size_t> places = {0, 3, 6};
    out.resize(9, -1);
    Work work = communicator.all_to_all_async(std::span(in), Blocks(counts), std::span(out),
                                              Blocks(receives, places));
    counts.assign(3, 1000);
    places.assign(3, 1000);
    ASSERT_TRUE(work.wait().ok());
    for (Rank from = 0; from < 3; ++from) {
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(out[3 * from + i], i < receives[0] ? from : -1);
    }
  });
}

TEST(Shapes, WorkInPlace) {
  on_all(3, [](Communicator& communicator) {
    const Rank self = communicator.rank();
    std::vector<int> all(3, -1);
    all[self] = self;
    const auto own = std::span(all).subspan(self, 1);
    ASSERT_TRUE(communicator.all_gather(own, std::span(all)).ok());
    EXPECT_EQ(all, (std::vector<int>{0, 1, 2}));
    ASSERT_TRUE(communicator.reduce_scatter(std::span(all), own).ok());
    EXPECT_EQ(own[0], 3 * self);
    const auto overlapping = communicator.all_to_all(std::span(all), std::span(all));
    EXPECT_EQ(overlapping.status().code(), StatusCode::kInvalidArgument);
  });
}

// One operation holds a ring, a message to oneself, and a receive from any rank.
TEST(Shapes, MessagesAreExchangedAsOneOperation) {
  on_all(3, [](Communicator& communicator) {
    const Rank self = communicator.rank();
    const auto next = static_cast<Rank>((self + 1) % 3);
    const auto last = static_cast<Rank>((self + 2) % 3);
    const std::vector<int> mine(1 + self, self);
    std::vector<int> from_last(10, -1), from_self(10, -1), from_any(10, -1);
    const std::vector<Message> messages = {Message::recv(std::span(from_last), last),
                                           Message::recv(std::span(from_self), self),
                                           Message::recv(std::span(from_any), kAnyRank, 7),
                                           Message::send(std::span(mine), next),
                                           Message::send(std::span(mine), self),
                                           Message::send(std::span(mine), last, 7)};
    const auto report = communicator.exchange(messages);
    ASSERT_TRUE(report.ok()) << report.status().text();
    ASSERT_EQ(report->messages.size(), 6u);
    EXPECT_EQ(report->messages[0].count, 1u + last);
    EXPECT_EQ(report->messages[1].count, 1u + self);
    EXPECT_EQ(report->messages[2].source, next);
    EXPECT_EQ(report->messages[2].tag, 7u);
    EXPECT_EQ(from_last[0], last);
    EXPECT_EQ(from_self[self], self);
    EXPECT_EQ(from_any[0], next);
    EXPECT_EQ(from_last[1 + last], -1) << "nothing is written behind what came";
    EXPECT_TRUE(communicator.exchange_async({}).wait().ok());
  });
}

}  // namespace
}  // namespace leeway
