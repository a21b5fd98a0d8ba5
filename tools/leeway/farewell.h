// Makes SIGINT, SIGTERM and SIGHUP end a rank of `leeway perf` or `leeway train` in order. The
// rank's communicator is aborted, so the other ranks learn at once that the rank left, and need no
// time-out.
//
// The library itself handles no signals, because signals belong to the program.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "interrupt.h"
#include "leeway/communicator.h"

namespace leeway::tools {

// Only one object may exist at a time.
class Farewell {
 public:
  Farewell();

  // Makes a communicator like Communicator::create(). A signal during this call ends the call; a
  // later signal aborts the communicator.
  Result<std::shared_ptr<Communicator>> create(const Options& options);

  // Returns 128 + the signal's number, or 0 if none came.
  int exit_code() const { return interrupt_.exit_code(); }

 private:
  void watch(const std::stop_token& stop);
  void abort();

  InterruptGuard interrupt_;
  std::mutex mutex_;
  PendingCommunicator joining_;
  std::weak_ptr<Communicator> communicator_;
  std::jthread watcher_;
};

}  // namespace leeway::tools
