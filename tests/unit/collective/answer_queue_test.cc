#include "collective/answer_queue.h"

#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using wire::PacketType;

class AnswerQueueOfOnePath : public ::testing::Test {
 protected:
  AnswerQueueOfOnePath() { paths.meet(3).configure(16, std::chrono::milliseconds(1)); }

  // Writes the latest answer. Returns true if the answer takes a sequence number of its path.
  bool write() {
    const bool numbered = answers.write(Instant{1'000}, paths, *buffer);
    const Train& train = buffer->train();
    EXPECT_EQ(train.to, 3);
    bytes.clear();
    for (const Slice& slice : train.slices)
      bytes.insert(bytes.end(), slice.data, slice.data + slice.bytes);
    EXPECT_EQ(wire::decode_prefix(bytes, nullptr, prefix), wire::Refusal::none);
    return numbered;
  }

  Paths paths;
  AnswerQueue answers;
  std::unique_ptr<protocol::TrainBuffer> buffer = std::make_unique<protocol::TrainBuffer>();
  std::vector<std::byte> bytes;
  wire::Prefix prefix;
};

TEST_F(AnswerQueueOfOnePath, APathCountsWhatIsNoAnswerToANumber) {
  answers.add(3, {PacketType::goodbye, 5, 0, 1, 99});
  answers.add(3, {PacketType::alive, 5, 0, 1, 77});
  EXPECT_FALSE(write());
  EXPECT_EQ(prefix.type, PacketType::alive);
  EXPECT_EQ(prefix.sequence, 77u) << "the probe's";
  EXPECT_TRUE(write());
  EXPECT_EQ(prefix.type, PacketType::goodbye);
  EXPECT_EQ(prefix.sequence, 1u) << "the path's";
  EXPECT_EQ(paths[3].last_sequence(), 1u);
  EXPECT_TRUE(answers.empty());
}

TEST_F(AnswerQueueOfOnePath, AnswersToProbesOfLengthsSayTheLength) {
  answers.add(3, {PacketType::size, 5, 0, 1, 12}, {wire::Size::Role::answer, 1472});
  EXPECT_FALSE(write());
  wire::Size size;
  ASSERT_EQ(wire::decode_size(bytes, size), wire::Refusal::none);
  EXPECT_EQ(size.role, wire::Size::Role::answer);
  EXPECT_EQ(size.bytes, 1472);
  EXPECT_EQ(prefix.sequence, 12u);
}

TEST_F(AnswerQueueOfOnePath, AReportHasThePathsCounts) {
  paths[3].on_arrival(Instant{500}, 20, 100);
  answers.add(3, {PacketType::report, 5, 0, 1});
  EXPECT_TRUE(write());
  wire::Report report;
  ASSERT_EQ(wire::decode_report(bytes, report), wire::Refusal::none);
  EXPECT_EQ(report.largest_sequence, 20u);
  EXPECT_EQ(report.received, 1u);
  EXPECT_EQ(report.received_bytes, 100u);
  EXPECT_TRUE(report.heard_goodbye);
  EXPECT_FALSE(paths[3].report_wanted());
}

TEST_F(AnswerQueueOfOnePath, WhatFindsNoRoomIsDropped) {
  for (std::uint32_t i = 0; i < AnswerQueue::kPlaces + 5; ++i)
    answers.add(3, {PacketType::alive, 5, 0, 1, i});
  std::size_t written = 0;
  for (; !answers.empty(); ++written) write();
  EXPECT_EQ(written, AnswerQueue::kPlaces);
  EXPECT_EQ(prefix.sequence, 0u) << "the first ones were kept";
}

}  // namespace
}  // namespace leeway::collective
