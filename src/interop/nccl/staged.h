// Operations cut into steps that go through staging memory: those on memory of streams, and all
// others of a communicator if one of its ranks has a CUDA driver.
//
// The cut depends only on kind, count and type, so all ranks cut in the same way. Every step is an
// operation of its own to Leeway.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/transfer.h"
#include "device_codec/stream_payload.h"
#include "interop/nccl/comm.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

// One part of a call; to Leeway, an operation of its own. Has its pieces, with their places in
// staging.
struct StagedPart {
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Piece {
    Operation operation;           // with the piece's count
    std::size_t input_at = kNone;  // in staging; kNone if this rank reads nothing
    std::size_t output_at = kNone;
  };
  std::vector<Piece> pieces;  // more than one only for messages
  std::size_t factor_at = kNone;
  device::Step copies;  // the step without its network part
};

// Cuts a collective, or one message.
std::vector<StagedPart> cut(const Operation& operation, int rank, int size);
// Puts all messages of a group into one part, so that no order of them can deadlock. Staging needs
// room for all of them at once.
StagedPart cut_messages(std::span<const Operation> messages);

// A staged call: one collective or message, or all messages of one communicator in a group. Its
// steps run after begin(). The call is in progress until its last step is done.
class StagedCall : public std::enable_shared_from_this<StagedCall> {
 public:
  StagedCall(std::shared_ptr<Comm> comm, std::vector<Operation> operations);

  const std::shared_ptr<Comm>& comm() const { return comm_; }
  // Returns a step for each part. When all steps have run, each may run again, in a replay of a
  // graph.
  std::vector<device::Step> steps();
  // Returns the streams of the operations, each once.
  std::vector<device::cuda::Stream> streams() const;

  // Marks the call as in progress until its last step is done. Replays of a graph do not need it.
  void begin();
  // Undoes begin(), if the work was only captured or could not be enqueued.
  void not_begun();
  // Returns the result of the last run.
  Code code();

 private:
  // Returns the kernels for this call, which encode elements where they are. Returns null if
  // elements must be copied through staging.
  const device_codec::Kernels* kernels() const;
  void encode(const device_codec::Kernels& kernels, std::size_t index, device::Step& step);
  // Runs a part. `start` begins its operation; `done` is called at its end, with true if it
  // succeeded.
  void run(const std::function<Work()>& start, const std::function<void(bool ok)>& done);
  Work start(std::size_t index, std::byte* staging);
  Work start_encoded(std::size_t index, device_codec::StreamPayload& payload);
  void ended(const Result<CollectiveReport>& outcome);

  const std::shared_ptr<Comm> comm_;
  const std::vector<Operation> operations_;
  const std::vector<StagedPart> parts_;

  std::mutex mutex_;
  bool begun_ = false;
  std::size_t left_ = 0;  // parts that are not done
  Result<CollectiveReport> outcome_ = CollectiveReport();
  Code code_ = kSuccess;
  Scalar factor_ = 1;  // factor as the first part read it, in the order of the stream
};

// Enqueues calls on device, managed or pinned memory side by side.
Code enqueue(std::span<const std::shared_ptr<StagedCall>> calls);

// A staged call on host memory: the processor copies to and from staging.
class HostCall : public std::enable_shared_from_this<HostCall> {
 public:
  // `ended` is called when the call is done; it may be empty.
  static std::shared_ptr<HostCall> begin(const std::shared_ptr<StagedCall>& call,
                                         std::function<void()> ended);
  // Blocks until the call is done, and returns its result.
  Code wait();

 private:
  void finish_step(std::size_t index);

  std::shared_ptr<StagedCall> call_;
  std::vector<device::Step> steps_;
  std::vector<std::vector<std::byte>> staging_;
  std::function<void()> ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_ = 0;
};

}  // namespace leeway::nccl
