#include "protocol/train_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace leeway::protocol {
namespace {

using Bytes = std::vector<std::byte>;

Bytes gathered(TrainBuffer& buffer) {
  Bytes all;
  for (const Slice& slice : buffer.train().slices)
    all.insert(all.end(), slice.data, slice.data + slice.bytes);
  return all;
}

void append(TrainBuffer& buffer, std::size_t header, ByteSpan payload, int fill = 1) {
  std::memset(buffer.scratch(header).data(), fill, header);
  buffer.append(header, payload);
}

class TrainBufferAppend : public ::testing::Test {
 protected:
  std::unique_ptr<TrainBuffer> buffer_ = std::make_unique<TrainBuffer>();
};

TEST_F(TrainBufferAppend, LaysDatagramsEndToEnd) {
  const Bytes payload(100, std::byte{9});
  buffer_->start(3);
  EXPECT_TRUE(buffer_->empty());
  append(*buffer_, 56, payload, 1);
  append(*buffer_, 56, payload, 2);
  EXPECT_EQ(buffer_->datagrams(), 2u);
  const Train& train = buffer_->train();
  EXPECT_EQ(train.to, 3);
  EXPECT_EQ(train.segment_bytes, 156u);
  EXPECT_EQ(train.total_bytes, 312u);
  Bytes expected;
  for (const auto& [bytes, value] : {std::pair{56, 1}, {100, 9}, {56, 2}, {100, 9}}) {
    expected.resize(expected.size() + bytes, static_cast<std::byte>(value));
  }
  EXPECT_EQ(gathered(*buffer_), expected);
}

TEST_F(TrainBufferAppend, PayloadBehindItsHeaderIsOneSlice) {
  buffer_->start(0);
  for (int i = 0; i < 3; ++i) {
    const MutableByteSpan scratch = buffer_->scratch(60);
    std::memset(scratch.data(), i, scratch.size());
    buffer_->append(20, scratch.subspan(20, 40));
  }
  EXPECT_EQ(buffer_->train().slices.size(), 1u);
  EXPECT_EQ(buffer_->train().total_bytes, 180u);
}

TEST_F(TrainBufferAppend, AShorterDatagramMustBeTheLast) {
  buffer_->start(0);
  append(*buffer_, 100, {});
  EXPECT_TRUE(buffer_->fits(100));
  EXPECT_TRUE(buffer_->fits(36));
  EXPECT_FALSE(buffer_->fits(101)) << "longer than the first";
  append(*buffer_, 36, {});
  EXPECT_FALSE(buffer_->has_room());
  buffer_->start(0);
  EXPECT_TRUE(buffer_->has_room());
}

TEST_F(TrainBufferAppend, StopsAtTheKernelsLimits) {
  buffer_->start(0);
  std::size_t small = 0;
  for (; buffer_->has_room(); ++small) append(*buffer_, 64, {});
  EXPECT_EQ(small, TrainBuffer::kTrainDatagramsMax);
  buffer_->start(0);
  const Bytes payload(8944);
  while (buffer_->has_room()) append(*buffer_, 56, payload);
  EXPECT_EQ(buffer_->datagrams(), 7u);
  EXPECT_LE(buffer_->train().total_bytes, TrainBuffer::kTrainBytesMax);
}

// Three copies of a repair request for 900 packets exceed a quantum of two packets.
TEST_F(TrainBufferAppend, CopiesOfControlDatagramsFitBeyondTheLimit) {
  buffer_->limit(3000);
  buffer_->start(0);
  for (int copy = 0; copy < 3; ++copy) {
    ASSERT_TRUE(buffer_->fits(1400)) << copy;
    append(*buffer_, 1400, {});
  }
  EXPECT_FALSE(buffer_->has_room());
  EXPECT_EQ(buffer_->train().total_bytes, 4200u);
}

}  // namespace
}  // namespace leeway::protocol
