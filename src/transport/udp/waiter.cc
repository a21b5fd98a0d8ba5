#include "transport/udp/waiter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace leeway::transport {

Waiter::~Waiter() {
  if (event_ >= 0) close(event_);
}

Status Waiter::open(int socket) {
  socket_ = socket;
  event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_ >= 0) return {};
  return Status::error(StatusCode::kResourceExhausted, "no eventfd: %s", std::strerror(errno));
}

void Waiter::wait(Duration timeout, bool also_writable) {
  // Each side announces itself before it looks at the other (both sequentially consistent), so a call is never lost.
  waiting_.store(true);
  if (!called_.exchange(false)) {
    const std::int64_t ns = std::max<std::int64_t>(timeout.count(), 0);
    const timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    const auto socket_events = static_cast<short>(POLLIN | (also_writable ? POLLOUT : 0));
    pollfd watched[2] = {{socket_, socket_events, 0}, {event_, POLLIN, 0}};
    const int ready = ppoll(watched, 2, &limit, nullptr);
    if (ready > 0 && watched[1].revents != 0) drain();
  }
  waiting_.store(false);
}

void Waiter::wake() {
  if (called_.exchange(true) || !waiting_.load()) return;
  const std::uint64_t one = 1;
  // The counter cannot overflow: a second call before drain() does not get here.
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
}

void Waiter::drain() {
  std::uint64_t calls = 0;
  [[maybe_unused]] const ssize_t bytes = read(event_, &calls, sizeof(calls));
  called_.store(false);
}

}  // namespace leeway::transport
