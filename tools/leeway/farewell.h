// How a rank of `leeway perf` and `leeway train` ends when it is told to, by SIGINT or SIGTERM: its
// communicator says good-bye, so that the others hear at once that it left, and wait for no
// time-out.
//
// The library itself handles no signals: those are the program's.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "interrupt.h"
#include "leeway/communicator.h"

namespace leeway::tools {

// One at a time.
class Farewell {
 public:
  Farewell();

  // As Communicator::create(), which a signal ends. As long as the communicator lives a signal
  // aborts it.
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
