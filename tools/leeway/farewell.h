// Ends a rank of `leeway perf` or `leeway train` upon SIGINT or SIGTERM. Its communicator says
// good-bye, so the other ranks hear at once that it left, and need no time-out.
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

// At most one exists at a time.
class Farewell {
 public:
  Farewell();

  // Makes a communicator like Communicator::create(). A signal ends that call, and aborts the
  // communicator as long as it lives.
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
