#include "interop/nccl_net/background.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/per_process.h"
#include "base/thread.h"
#include "interop/nccl_net/connecting.h"
#include "leeway/communicator.h"

namespace leeway::nccl_net {
namespace {

constexpr auto kExitTime = std::chrono::milliseconds(200);

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
};

State& state() {
  static auto* const states = new PerProcess<State>;  // never destroyed: threads use it
  return states->get();
}

void wait_at_exit() {
  end_threads_at_exit();  // runs after the handler below, as handlers run in reverse order
  static const int registered =
      std::atexit([] { wait_for_background(std::chrono::steady_clock::now() + kExitTime); });
  (void)registered;
}

void finish(State& here) {
  const std::lock_guard lock(here.mutex);
  --here.running;
  here.changed.notify_all();
}

template <typename T>
void destroy_in_background(std::unique_ptr<T> object) {
  wait_at_exit();
  State& here = state();
  {
    const std::lock_guard lock(here.mutex);
    ++here.running;
  }
  const auto shared = std::make_shared<std::unique_ptr<T>>(std::move(object));
  const auto destroy = [&here, shared] {
    shared->reset();
    finish(here);
  };
  run_behind("leave a connection", destroy);
}

}  // namespace

void leave_in_background(std::unique_ptr<Communicator> communicator) {
  destroy_in_background(std::move(communicator));
}

void drop_in_background(std::unique_ptr<Connecting> connecting) {
  destroy_in_background(std::move(connecting));
}

void wait_for_background(std::chrono::steady_clock::time_point until) {
  State& here = state();
  std::unique_lock lock(here.mutex);
  here.changed.wait_until(lock, until, [&here] { return here.running == 0; });
}

}  // namespace leeway::nccl_net
