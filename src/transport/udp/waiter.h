// Sleeping until a socket is ready, another thread calls, or time is up.
//
// ppoll() on the socket and an eventfd rather than Asio's loop. Measured with data already there (Asio 1.22, Linux 6.18):
// ppoll() 0.55 us; Asio with an exact timer for each wait 1.37 us and two allocations; with one timer that only moves to
// earlier times 0.66 us, one allocation and ends that come too early. A transport never allocates after construction, so
// Asio would need its own handler allocators on top. Sockets, addresses and the rendezvous stay with Asio.
//
// A timeout ends up to the thread's timer slack late (Linux: 50 us unless set with PR_SET_TIMERSLACK).
#pragma once

#include <atomic>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

class Waiter {
 public:
  Waiter() = default;
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Status open(int socket);

  // Until the socket is readable (or writable, where asked), wake() or `timeout`.
  void wait(Duration timeout, bool also_writable);

  // Ends the wait() in progress, or the next one. Any thread. No system call unless somebody waits.
  void wake();

 private:
  void drain();

  int socket_ = -1;
  int event_ = -1;
  std::atomic<bool> called_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace leeway::transport
