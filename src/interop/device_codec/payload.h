// A payload source and sink on a device. Kernels encode, sum and decode the chunks of a call, and
// the network sees pinned memory. Only encoded bytes go over the bus.
//
// The class is for calls that the host waits for. A thread of the class enqueues kernels as chunks
// come and waits for the kernels, so that no stream ever waits for the network. Never tried on a
// GPU.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "device_codec/kernels.h"
#include "device_codec/pinned_memory.h"
#include "leeway/payload.h"

namespace leeway::device_codec {

class DevicePayload final : public PayloadSource, public PayloadSink {
 public:
  // All elements of the call, in memory of the device. The input is complete when the call begins.
  struct Tensors {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;  // may be the input
  };

  // The context is the device's. Context, driver and kernels must outlive this object.
  DevicePayload(const device::Driver& driver, const Kernels& kernels,
                device::cuda::Context context);
  // No call may be in progress. Waits for kernels of a call that failed.
  ~DevicePayload() override;

  // Sets the tensors of the next call. One call at a time.
  void set_tensors(const Tensors& tensors) { tensors_ = tensors; }
  // Returns why chunks of the last call stay unencoded or unused: the error of the CUDA call that
  // failed.
  Status status();

  // Returns kUnsupported if the call is no sum or average of all ranks' elements, or its codec has
  // no kernels (as codecs that are the tensor's own type). Returns kResourceExhausted if there is
  // no pinned memory, or no thread.
  Status begin(const PayloadLayout& layout) override;
  EncodedChunk encoded(const PayloadChunk& chunk) override;
  Duration poll_every() const override { return std::chrono::microseconds(20); }
  Result<MutableByteSpan> landing(const PayloadLayout& layout) override;
  void take(const PayloadChunk& chunk, std::span<const PayloadContribution> contributions) override;
  bool used(const PayloadChunk& chunk) override;

 private:
  // Work for the thread: a chunk to encode, or one that take() handed over.
  struct Task {
    PayloadChunk chunk;
    bool handed_over = false;
    std::vector<Contribution> contributions;
  };
  // The encoded chunks of one block, in pinned memory.
  struct Block {
    std::vector<std::size_t> chunk_at;
    std::vector<bool> ready;  // under the mutex
  };

  Status check(const PayloadLayout& layout);
  std::size_t set_up(PayloadHalf half, Rank owner, std::size_t at, Block& block);
  void add_tasks_of_contributions();
  Block& block_of(const PayloadChunk& chunk);

  void work(const std::stop_token& stop);
  Status run(const Task& task, std::vector<PayloadChunk>& encoded);
  Status encode(const PayloadChunk& chunk, const std::byte* elements);
  Status sum(const Task& task, std::vector<PayloadChunk>& encoded);
  Status encode_whole(const PayloadChunk& reduced, std::vector<PayloadChunk>& encoded);
  Status add_up(const codec::Format& format, const Packets& packets, std::byte* elements,
                std::span<const Contribution> contributions, SumJob::Absent absent);
  Packets packets_of(const PayloadChunk& chunk) const;
  const std::byte* input_of(const PayloadChunk& contribution) const;
  std::byte* output_of(const PayloadChunk& chunk) const;

  const device::Driver& driver_;
  const Kernels& kernels_;
  const device::cuda::Context context_;
  Tensors tensors_;

  // State of the call. The caller writes it before it queues the call's first task. From then on
  // only the worker thread uses it.
  PayloadLayout layout_;
  codec::Format reduce_format_;
  codec::Format spread_format_;
  PinnedMemory encoded_memory_;
  PinnedMemory landing_memory_;
  PinnedMemory factor_memory_;
  std::size_t factors_used_ = 0;
  std::vector<Block> contributions_;  // by owner
  Block spread_;
  std::vector<bool> reduced_;  // by chunk of our block; used by the thread only

  std::mutex mutex_;  // protects the members below, and Block::ready
  std::condition_variable_any changed_;
  std::deque<Task> tasks_;
  bool idle_ = true;
  Status status_;
  std::size_t used_ = 0;
  std::size_t asked_ = 0;  // chunks that the library knows to be used
  device::cuda::Stream stream_ = nullptr;
  Thread thread_;
  Status no_thread_;  // reason why there is no thread
};

}  // namespace leeway::device_codec
