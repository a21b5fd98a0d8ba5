#include "transport/waiter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/contracts.h"
#include "base/descriptors.h"

namespace leeway::transport {

Waiter::~Waiter() {
  if (event_ >= 0) close(event_);
}

Status Waiter::open(std::span<const int> handles) {
  LEEWAY_ASSERT(handles.size() <= kHandlesMax && event_ < 0);
  std::copy(handles.begin(), handles.end(), handles_.begin());
  handle_count_ = handles.size();
  event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_ >= 0) return {};
  return Status::error(StatusCode::kResourceExhausted, "no eventfd: %s%s", std::strerror(errno),
                       descriptor_hint(errno));
}

void Waiter::also_watch(int handle) {
  LEEWAY_ASSERT(event_ >= 0 && handle_count_ < kHandlesMax);
  handles_[handle_count_++] = handle;
}

void Waiter::wait(Duration timeout, bool also_writable) {
  // wait() sets waiting_ before it reads called_, and wake() sets called_ before it reads waiting_.
  // The accesses are sequentially consistent, so no wake() is lost.
  waiting_.store(true);
  if (!called_.exchange(false)) {
    const std::int64_t ns = std::max<std::int64_t>(timeout.count(), 0);
    const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
    pollfd watched[1 + kHandlesMax] = {{event_, POLLIN, 0}};
    for (std::size_t i = 0; i < handle_count_; ++i) watched[1 + i] = {handles_[i], POLLIN, 0};
    if (also_writable) watched[1].events |= POLLOUT;
    const int ready = ppoll(watched, 1 + handle_count_, &limit, nullptr);
    if (ready > 0 && watched[0].revents != 0) drain();
  }
  waiting_.store(false);
}

void Waiter::wake() {
  if (called_.exchange(true) || !waiting_.load()) return;
  const std::uint64_t one = 1;
  // The counter cannot overflow, because a second wake() before drain() has returned above.
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
}

void Waiter::drain() {
  std::uint64_t calls = 0;
  [[maybe_unused]] const ssize_t bytes = read(event_, &calls, sizeof(calls));
  called_.store(false);
}

}  // namespace leeway::transport
