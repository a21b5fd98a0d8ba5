// Sleeps until a socket or another pollable handle is ready, another thread calls wake(), or time
// is up.
//
// It uses ppoll() on the handles and an eventfd, not Asio's loop, which is slower and allocates.
// Measured with data already there (Asio 1.22, Linux 6.18): ppoll() takes 0.55 us. Asio with an
// exact timer for each wait takes 1.37 us and two allocations. Asio with one timer that only moves
// to earlier times takes 0.66 us and one allocation, but then waits end too early. Asio still opens
// sockets, resolves addresses and serves the rendezvous.
//
// A timeout is late by up to the thread's timer slack (Linux: 50 us unless PR_SET_TIMERSLACK says
// otherwise).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <span>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

class Waiter {
 public:
  Waiter() = default;
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static constexpr std::size_t kHandlesMax = 4;

  // Watches at most kHandlesMax handles, which stay the caller's. Returns kResourceExhausted if the
  // process has too many files open.
  Status open(std::span<const int> handles);
  Status open(int socket) { return open(std::span(&socket, 1)); }

  // Watches one more handle. Call it after open() and while nobody waits.
  void also_watch(int handle);

  // From now on only wake() and timeouts end a wait, because the handles are about to be closed.
  void forget_handles() { handle_count_ = 0; }

  // Sleeps until a handle is readable (or the first one writable, if asked for), until wake(), or
  // until `timeout` is over.
  void wait(Duration timeout, bool also_writable);

  // Ends the wait() in progress, or the next one if none is. Any thread may call it. It makes no
  // system call unless somebody waits.
  void wake();

 private:
  void drain();

  std::array<int, kHandlesMax> handles_{};
  std::size_t handle_count_ = 0;
  int event_ = -1;
  std::atomic<bool> called_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace leeway::transport
