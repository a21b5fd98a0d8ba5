#include "driving/fork.h"

#include <pthread.h>

#include <atomic>

namespace leeway::driving {
namespace {

std::atomic<std::uint32_t> generation{0};

void count_fork() {
  generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::uint32_t fork_generation() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &count_fork);
  return generation.load(std::memory_order_relaxed);
}

Status forked() {
  return Status::error(StatusCode::kUnavailable,
                       "this process was forked from the one that made the communicator, and has "
                       "none of its threads: make communicators after fork()");
}

}  // namespace leeway::driving
