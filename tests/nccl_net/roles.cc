// The roles of helper processes.
#include <sched.h>
#include <unistd.h>

#include <thread>

#include "peer.h"
#include "ring.h"
#include "traffic.h"

namespace nccl_net_test {
namespace {

int in_ring(const std::vector<std::string>& arguments, const Pipes& pipes) {
  const Net net = load(std::stoi(arguments[0]));
  return RingRank(net).run([&](const Handle& own) {
    pipes.write_handle(own);
    return pipes.read_handle();
  })
             ? 0
             : 1;
}

// Sends one message, then does nothing until it is killed.
int sender_that_stops(const std::vector<std::string>&, const Pipes& pipes) {
  const Net net = load();
  void* const comm = connected(net, pipes.read_handle());
  if (comm == nullptr || !send_stream(net, comm, 1, 100, 1)) return 1;
  pipes.signal();
  ::pause();
  return 0;
}

// Listens, receives one message, signals that, and waits until it is killed.
int receiver_that_stops(const std::vector<std::string>&, const Pipes& pipes) {
  const Net net = load();
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  if (net.listen(0, handle, &listener) != kSuccess) return 1;
  pipes.write_handle(handle);
  void* const comm = accepted(net, listener);
  if (comm == nullptr || !receive_stream(net, comm, 1, 100, 1)) return 1;
  pipes.signal();
  ::pause();
  return 0;
}

}  // namespace

int run_role(const std::string& name, const std::vector<std::string>& arguments,
             const Pipes& pipes) {
  if (name == "ring") return in_ring(arguments, pipes);
  if (name == "sender that stops") return sender_that_stops(arguments, pipes);
  if (name == "receiver that stops") return receiver_that_stops(arguments, pipes);
  return 2;
}

}  // namespace nccl_net_test
