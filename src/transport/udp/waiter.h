// Sleeping until a socket is ready, another thread calls, or time is up.
//
// ppoll() on the socket and an eventfd rather than Asio's loop: with the leanest use of Asio (one outstanding
// async_wait, one timer moved only to earlier times) a wait took 0.82 us against 0.52 us when data were there, its
// edge-triggered event for datagrams that polling had already taken ends the next wait for nothing (one more wait and
// one more empty receive, about 1.1 us), and starting an operation outside run() allocates. Sockets, addresses and
// the rendezvous stay with Asio.
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
