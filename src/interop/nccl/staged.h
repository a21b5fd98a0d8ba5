// Operations cut into steps that go through staging memory: those on device memory, and all others
// of a communicator of which some rank has a CUDA driver.
//
// The cut follows from kind, count and type alone, so that all ranks cut alike. Every step is an
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

// A part of a call that is one operation to Leeway: the operations of which it consists, with
// their elements and where they lie in staging.
struct StagedPart {
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Piece {
    Operation operation;           // with the piece's count
    std::size_t input_at = kNone;  // in staging; none: this rank reads nothing
    std::size_t output_at = kNone;
  };
  std::vector<Piece> pieces;  // more than one: messages
  std::size_t factor_at = kNone;
  device::Step copies;  // without its network part
};

// Of a collective, or of one message.
std::vector<StagedPart> cut(const Operation& operation, int rank, int size);
// Of a group's messages: one part. No order of them can block, so they need room at once.
StagedPart cut_messages(std::span<const Operation> messages);

// A collective, or messages: what one call, or the messages of one communicator in a group, begins.
class StagedCall : public std::enable_shared_from_this<StagedCall> {
 public:
  StagedCall(std::shared_ptr<Comm> comm, std::vector<Operation> operations);

  const std::shared_ptr<Comm>& comm() const { return comm_; }
  // Each may run again when all have run: a replay of a graph.
  std::vector<device::Step> steps();
  // Those of the operations, each once.
  std::vector<device::cuda::Stream> streams() const;

  // The call is under way from now until its last step is done. A replay says so by itself.
  void begin();
  // begin() was too early.
  void not_begun();
  // What came of the last run.
  Code code();

 private:
  // Those that encode the elements, so that these do not pass through staging. Null: none do.
  const device_codec::Kernels* kernels() const;
  void encode(const device_codec::Kernels& kernels, std::size_t index, device::Step& step);
  // `start` begins a part's operation; `done` hears whether it went well.
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
  Scalar factor_ = 1;  // as the first part found it in stream order
};

// Enqueues calls on device memory, side by side.
Code enqueue(std::span<const std::shared_ptr<StagedCall>> calls);

// A call on host memory: the processor copies, at once.
class HostCall : public std::enable_shared_from_this<HostCall> {
 public:
  // `ended`: called when it is done; may be empty.
  static std::shared_ptr<HostCall> begin(const std::shared_ptr<StagedCall>& call,
                                         std::function<void()> ended);
  // Until it is done.
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
