// Payload source and sink on the host, for the simulator and tests. It is also the reference:
// sources and sinks on a device must compute the same bits.
//
// It has no thread. Its owner calls encode() and use() at any time, on any thread. One thread may
// call encode() while another thread calls use().
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "codec/codec.h"
#include "leeway/payload.h"

namespace leeway::collective {

struct HostTensors {
  ConstTensorView input;
  TensorView output;
  Scalar factor = 1;
  // This rank's block of the spread half, which is read. With `adopt`, its values are replaced by
  // the values that receivers decode. An all_reduce ignores own_block, since its reduce half writes
  // the block into the output.
  std::byte* own_block = nullptr;
  bool adopt = true;
  Duration poll_every{0};  // as PayloadSource's
};

class HostPayload final : public PayloadSource, public PayloadSink {
 public:
  explicit HostPayload(const HostTensors& tensors) : tensors_(tensors) {}

  // Returns the chunks that this rank must encode before any packet arrives, in the order of
  // sending: one chunk of each block in turn. Call it after begin().
  std::vector<PayloadChunk> chunks() const;
  // Encodes the chunk. From now on encoded() returns it.
  void encode(const PayloadChunk& chunk);

  // Uses the oldest chunk that the library handed over: sums or decodes it, then encodes the chunks
  // of this rank's block that became complete. Returns false if no chunk waits.
  bool use();
  // Number of chunks that use() has not used.
  std::size_t unused();

  const PayloadLayout& layout() const { return layout_; }

  Status begin(const PayloadLayout& layout) override;
  EncodedChunk encoded(const PayloadChunk& chunk) override;
  Duration poll_every() const override { return tensors_.poll_every; }
  Result<MutableByteSpan> landing(const PayloadLayout& layout) override;
  void take(const PayloadChunk& chunk, std::span<const PayloadContribution> contributions) override;
  bool used(const PayloadChunk& chunk) override;

 private:
  struct Task {
    PayloadChunk chunk;
    std::vector<PayloadContribution> contributions;
    std::vector<float> scales;  // by contribution, then by packet
  };
  struct Encoded {
    std::vector<std::byte> bytes;
    std::vector<std::size_t> at;  // by chunk
    std::vector<bool> ready;      // under the lock
  };
  Encoded& encoded_of(const PayloadChunk& chunk);
  void set_up(PayloadHalf half, Rank owner, Encoded& encoded);
  std::byte* element_of(const PayloadChunk& chunk) const;
  void sum(const Task& task);
  void decode(const Task& task);
  void encode_whole(const PayloadChunk& reduced);
  std::optional<Task> next_task();

  HostTensors tensors_;
  PayloadLayout layout_;
  codec::Format reduce_format_;
  codec::Format spread_format_;
  std::vector<Encoded> contributions_;  // by owner
  Encoded spread_;
  std::vector<std::byte> landing_;
  std::vector<bool> reduced_;  // chunks of our block

  std::mutex mutex_;  // guards the members below, and Encoded::ready
  std::deque<Task> tasks_;
  std::size_t handed_ = 0;
  std::size_t used_ = 0;
  std::size_t asked_ = 0;  // chunks that the library knows to be used
};

}  // namespace leeway::collective
