// One rank of one communicator: what stands behind a handle.
//
// A Comm is made at once and becomes ready later, when its group has met. Everything that may have
// to wait for others begins here in the background; whoever was asked to block waits for it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/lane.h"
#include "interop/nccl/codes.h"
#include "interop/nccl/config.h"
#include "interop/nccl/operation.h"
#include "interop/nccl/place.h"
#include "interop/nccl/policy.h"
#include "interop/nccl/reductions.h"
#include "interop/nccl/registrations.h"
#include "leeway/communicator.h"

namespace leeway::nccl {

class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(Config config, int device) : config_(std::move(config)), device_(device) {}

  const Config& config() const { return config_; }
  bool blocking() const { return config_.blocking; }
  int device() const { return device_; }
  // Once it is ready.
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::uint64_t ordinal() const { return ordinal_; }

  // Becomes ready with what comes of `pending`, and when all ranks have the same policy. `place`,
  // where the ranks meet, is left then; may be null.
  void begin(PendingCommunicator pending, std::shared_ptr<Place> place = nullptr);
  // The same with a communicator that stands already.
  void begin(std::unique_ptr<Communicator> communicator);
  // Waits until it is ready or has failed. A split gives no communicator to a rank without a color:
  // kSuccess, and none() is true.
  Code wait_ready();
  bool none() const { return none_; }

  // Fails, unless it has failed already or was revoked. The first failure is told (debug.h): what
  // fails in the background has nobody else to tell it.
  void fail(const Status& status);
  // The same for a call that tells the failure itself. True: this is the first.
  bool set_failure(Code code, std::string_view why);
  // Why there is nothing to hold().
  Status gone();
  // Whether rank and size are known.
  bool met();

  // What GetAsyncError says: kInProgress while something is under way in the background.
  Code state();
  // kSuccess where operations may be issued; else the code that a call answers, whose text is told.
  Code usable(std::string_view title);
  // The communicator, while it is ready; kept alive by who holds it.
  std::shared_ptr<Communicator> hold();

  // Of an operation that is done: what its caller is told. Writes the trace, and remembers errors
  // that end the communicator.
  Code finish(const Operation& operation, const Result<CollectiveReport>& outcome);
  // The same, of several at once.
  Code finish(std::string_view title, const Status& status);
  // Between them state() is kInProgress. Of communicators that do not block.
  void begin_operation();
  void end_operation();

  // Between them leaving waits. Of operations that streams wait for.
  void begin_streaming();
  void end_streaming();

  // Some rank has a CUDA driver, so all cut their operations alike (staged.h). Once it is ready.
  bool staged() const { return staged_; }
  // The order of its operations on device memory; made by the first.
  Result<std::shared_ptr<device::Lane>> lane();
  // Null: none was made.
  std::shared_ptr<device::Lane> lane_if_made();
  // Streams that wait for operations of this communicator go on.
  void free_streams();

  // How an operation is delivered, by the policy.
  void decide(Operation& operation) const;

  // Waits for operations under way, then leaves the group, on a thread of its own.
  void begin_leaving();
  void wait_left();
  void wait_left_until(std::chrono::steady_clock::time_point end);
  // Everything in flight ends now; nobody is waited for.
  void abort();
  // The same, but the ranks may still be shrunk to a new group.
  void end_operations();
  // As end_operations(), and no operation is begun any more. Errors of before are forgotten: once
  // what was in flight has ended, state() is kSuccess, and ranks may be split or shrunk.
  Code revoke();
  bool revoked();
  // kSuccess where a split may begin: usable(), or revoked and quiet.
  Code splittable(std::string_view title);
  // `child` becomes this rank's communicator of the split. A revoked communicator has no calls by
  // which ranks could tell their colors, so that its ranks meet anew first.
  void split_into(const std::shared_ptr<Comm>& child, int color, int key);

  Reductions reductions;
  Registrations registrations;
  std::atomic<bool> suspended{false};  // by CommSuspend: operations go on as before

 private:
  enum class Phase { joining, ready, failed, leaving, left, aborted };

  void on_joined();
  void compare_facts();
  void on_compared();
  // Fails this communicator if Leeway's has failed.
  void look_inside();
  // Whether what was begun has ended. Streams of a revoked communicator were let go: what they had
  // not reached never ends.
  bool quiet() const { return under_way_ == 0 && (streaming_ == 0 || revoked_); }
  bool enter(Phase phase);
  void leave();

  const Config config_;
  const int device_;
  int rank_ = 0;
  int size_ = 0;
  std::uint64_t ordinal_ = 0;
  bool none_ = false;
  Policy policy_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::joining;
  bool revoked_ = false;
  int under_way_ = 0;
  int streaming_ = 0;
  bool staged_ = false;
  std::shared_ptr<device::Lane> lane_;
  std::atomic<int> failure_{kSuccess};  // sticky
  std::string why_;                     // of failure_
  std::shared_ptr<Place> place_;
  PendingCommunicator pending_;
  PendingCommunicator meeting_;  // of a revoked parent's ranks, before a split
  std::shared_ptr<Communicator> communicator_;
  // Of the same ranks, made for splits after communicator_ was revoked.
  std::vector<std::shared_ptr<Communicator>> met_;
  // What ranks compare, as numbers of 64 bits.
  struct Facts {
    std::uint64_t policy = 0;  // its fingerprint
    std::uint64_t has_driver = 0;
  };
  Facts own_facts_;
  std::vector<Facts> facts_;
  Work comparing_;
};

}  // namespace leeway::nccl
