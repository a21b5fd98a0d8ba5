#include "base/fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace leeway {
namespace {

std::atomic<std::uint32_t> generation{0};

// The descriptors kept from children. Never destroyed, because threads that use it may still run
// after exit() has destroyed static objects.
struct Kept {
  std::mutex mutex;  // held during a fork, so that the child finds the list whole
  std::vector<int> descriptors;
};

Kept& kept() {
  static auto* const all = new Kept;
  return *all;
}

void before_fork() {
  kept().mutex.lock();
}

void in_parent() {
  kept().mutex.unlock();
}

// Replaces the descriptors that are kept from children by /dev/null. The numbers stay in use: their
// owners in the child may still close them, and must not close another file. Makes only calls that
// are safe after the fork of a process with threads.
void in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : kept().descriptors) {
    if (nothing < 0 || ::dup3(nothing, descriptor, O_CLOEXEC) < 0) ::close(descriptor);
  }
  if (nothing >= 0) ::close(nothing);
  kept().descriptors.clear();
  kept().mutex.unlock();
}

void watch_forks() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(&before_fork, &in_parent, &in_child);
}

}  // namespace

std::uint32_t fork_generation() {
  watch_forks();
  return generation.load(std::memory_order_relaxed);
}

KeptFromChildren::KeptFromChildren(int descriptor) : descriptor_(descriptor) {
  watch_forks();
  (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const std::lock_guard lock(kept().mutex);
  kept().descriptors.push_back(descriptor);
}

// In a forked child the list no longer has the parent's descriptors, so the search may find none.
void KeptFromChildren::release() {
  if (descriptor_ < 0) return;
  const std::lock_guard lock(kept().mutex);
  auto& all = kept().descriptors;
  const auto at = std::find(all.begin(), all.end(), std::exchange(descriptor_, -1));
  if (at != all.end()) all.erase(at);
}

}  // namespace leeway
