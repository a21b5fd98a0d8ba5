// One rank of one communicator: the object behind an ncclComm_t.
//
// A Comm is made in state `joining`. After begin() it becomes `ready` when its group has met, or
// `failed` if the group cannot meet. A later failure leaves it `ready`, but calls return the
// failure. begin_leaving() makes it `leaving`, then `left`. abort() makes it `aborted` in any
// state.
//
// Work that may have to wait for other ranks runs in the background. A call that has to block waits
// until that work is done.
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
  // Valid once the communicator is ready.
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::uint64_t ordinal() const { return ordinal_; }

  // Takes the communicator that `pending` gives. The Comm becomes ready if all ranks have the same
  // policy, else fails. The Comm then leaves `place`, where the ranks met; null if there is none.
  void begin(PendingCommunicator pending, std::shared_ptr<Place> place = nullptr);
  // Like the function above, for a communicator whose ranks have met already.
  void begin(std::unique_ptr<Communicator> communicator);
  // Blocks until the Comm is ready or has failed, and returns kSuccess or the failure. A rank
  // without a color gets no communicator from a split: this returns kSuccess, and none() is true.
  Code wait_ready();
  bool none() const { return none_; }

  // Makes the Comm fail, unless it has failed already or was revoked. Logs the first failure at
  // WARN and keeps its text (debug.h), as a failure in the background has no caller to report it.
  void fail(const Status& status);
  // Like fail(), but without the log, for a caller that logs the failure itself. Returns true if
  // this is the first failure.
  bool set_failure(Code code, std::string_view why);
  // Returns the error that says why hold() is null.
  Status gone();
  // Returns true if the group has met, so that rank and size are known.
  bool met();

  // The answer of ncclCommGetAsyncError: the failure, else kInProgress while it joins, leaves or
  // has an operation in progress in the background, else kSuccess.
  Code state();
  // Returns kSuccess if operations may be issued. Else logs why at WARN, keeps that text (debug.h),
  // and returns the code for the caller. `title` names the call.
  Code usable(std::string_view title);
  // Returns Leeway's communicator, which the pointer keeps alive. Returns null before the group has
  // met, and once it has left or was aborted.
  std::shared_ptr<Communicator> hold();

  // Ends an operation that is done, and returns the code for its caller. Writes its line of the
  // trace, and keeps an error that ends the communicator.
  Code finish(const Operation& operation, const Result<CollectiveReport>& outcome);
  // Like the function above, for work without a line in the trace. `title` begins an error's text.
  Code finish(std::string_view title, const Status& status);
  // From begin_operation() to end_operation() of an operation, state() is kInProgress and leaving
  // waits. Only communicators that do not block call these functions.
  void begin_operation();
  void end_operation();

  // From begin_streaming() to end_streaming() of a call through staging (staged.h), leaving waits.
  void begin_streaming();
  void end_streaming();

  // Returns true if some rank has a CUDA driver. Then all ranks cut operations as staged.h does.
  // Valid once ready.
  bool staged() const { return staged_; }
  // Returns the lane of this communicator's operations on device memory. The first call opens it.
  Result<std::shared_ptr<device::Lane>> lane();
  // Returns the lane, or null if lane() has opened none.
  std::shared_ptr<device::Lane> lane_if_made();
  // Drops operations on streams that have not begun, so that streams that wait for them go on.
  void free_streams();

  // Sets delivery, codec and estimator of an operation by the policy.
  void decide(Operation& operation) const;

  // Starts a thread that waits for operations in progress and then leaves the group.
  void begin_leaving();
  void wait_left();
  void wait_left_until(std::chrono::steady_clock::time_point end);
  // Ends everything in flight now, and waits for nobody.
  void abort();
  // Like abort(), but the ranks may still form a new group by ncclCommShrink.
  void end_operations();
  // Does end_operations(), refuses operations from now on, and forgets failures. Once everything in
  // flight has ended (for which it waits if blocking()), state() is kSuccess and the ranks may be
  // split or shrunk. Returns kInvalidArgument if the Comm is not ready or was revoked before.
  Code revoke();
  bool revoked();
  // Returns kSuccess if a split may begin: if usable(), or if revoked and nothing is in flight.
  // Else logs and returns as usable() does.
  Code splittable(std::string_view title);
  // Makes `child` this rank's communicator of the split, in the background. Ranks exchange their
  // colors by calls. A revoked communicator carries no calls, so its ranks first form a new group.
  void split_into(const std::shared_ptr<Comm>& child, int color, int key);

  Reductions reductions;
  Registrations registrations;
  std::atomic<bool> suspended{false};  // by ncclCommSuspend; operations go on as before

 private:
  enum class Phase { joining, ready, failed, leaving, left, aborted };

  void on_joined();
  void compare_facts();
  void on_compared();
  // Fails this Comm if its Leeway communicator has failed.
  void look_inside();
  // Returns true if nothing is in flight. After revoke(), calls through staging are ignored: their
  // steps that had not begun never end, and free_streams() has let their streams go on.
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
  std::atomic<int> failure_{kSuccess};  // the first failure; only revoke() clears it
  std::string why_;                     // text of failure_
  std::shared_ptr<Place> place_;
  PendingCommunicator pending_;
  PendingCommunicator meeting_;  // new group of a revoked parent's ranks, before a split
  std::shared_ptr<Communicator> communicator_;
  // Groups that the ranks formed for splits after communicator_ was revoked.
  std::vector<std::shared_ptr<Communicator>> met_;
  // Facts about each rank that all ranks exchange by an all-gather of u64.
  struct Facts {
    std::uint64_t policy = 0;  // its fingerprint
    std::uint64_t has_driver = 0;
  };
  Facts own_facts_;
  std::vector<Facts> facts_;
  Work comparing_;
};

}  // namespace leeway::nccl
