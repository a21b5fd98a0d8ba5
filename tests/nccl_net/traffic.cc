#include "traffic.h"

#include <sched.h>

#include <cstdint>
#include <deque>

namespace nccl_net_test {
namespace {

using Clock = std::chrono::steady_clock;

// Calls `call` until it returns a pointer and not null. Returns null after kPatience.
template <typename Call>
void* polled(const Call& call) {
  const auto end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    void* out = nullptr;
    if (call(&out) != kSuccess) return nullptr;
    if (out != nullptr) return out;
    sched_yield();
  }
  return nullptr;
}

}  // namespace

void* connected(const Net& net, Handle handle) {
  return polled([&](void** out) { return net.connect(0, handle, out); });
}

void* accepted(const Net& net, void* listener) {
  return polled([&](void** out) { return net.accept(listener, out); });
}

Pair make_pair(const Net& net) {
  Pair pair;
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  void* listener = nullptr;
  if (net.listen(0, handle, &listener) != kSuccess) return pair;
  const auto end = Clock::now() + kPatience;
  while ((pair.sender == nullptr || pair.receiver == nullptr) && Clock::now() < end) {
    if (pair.sender == nullptr && net.connect(0, handle, &pair.sender) != kSuccess) break;
    if (pair.receiver == nullptr && net.accept(listener, &pair.receiver) != kSuccess) break;
    sched_yield();
  }
  (void)net.close_listen(listener);
  return pair;
}

void close(const Net& net, const Pair& pair) {
  (void)net.close_send(pair.sender);
  (void)net.close_receive(pair.receiver);
}

void* begin_send(const Net& net, void* comm, const std::vector<char>& data) {
  return polled([&](void** out) { return net.send(comm, data.data(), data.size(), out); });
}

void* begin_receive(const Net& net, void* comm, std::vector<char>& data) {
  return polled([&](void** out) { return net.receive(comm, data.data(), data.size(), out); });
}

int finish(const Net& net, void* request, int* size) {
  const auto end = Clock::now() + kPatience;
  int done = 0;
  while (done == 0) {
    const int result = net.test(request, &done, size);
    if (result != kSuccess) return result;
    if (Clock::now() > end) return -1;
    if (done == 0) sched_yield();
  }
  return kSuccess;
}

std::vector<char> pattern(std::size_t size, int seed) {
  std::vector<char> data(size);
  std::uint32_t state = 0x9E3779B9U * static_cast<std::uint32_t>(seed + 1);
  for (char& byte : data) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return data;
}

bool send_stream(const Net& net, void* comm, int count, std::size_t size, int depth) {
  std::deque<std::vector<char>> data;
  std::deque<void*> requests;
  for (int sent = 0; sent < count || !requests.empty();) {
    if (sent < count && requests.size() < static_cast<std::size_t>(depth)) {
      data.push_back(pattern(size, sent++));
      requests.push_back(begin_send(net, comm, data.back()));
      if (requests.back() == nullptr) return false;
      continue;
    }
    if (finish(net, requests.front()) != kSuccess) return false;
    requests.pop_front();
    data.pop_front();
  }
  return true;
}

bool receive_stream(const Net& net, void* comm, int count, std::size_t size, int depth) {
  std::deque<std::vector<char>> data;
  std::deque<void*> requests;
  int checked = 0;
  for (int posted = 0; posted < count || !requests.empty();) {
    if (posted < count && requests.size() < static_cast<std::size_t>(depth)) {
      ++posted;
      data.emplace_back(size + 100);  // more room than is needed
      requests.push_back(begin_receive(net, comm, data.back()));
      if (requests.back() == nullptr) return false;
      continue;
    }
    int got = -1;
    if (finish(net, requests.front(), &got) != kSuccess || got != static_cast<int>(size))
      return false;
    data.front().resize(size);
    if (data.front() != pattern(size, checked++)) return false;
    requests.pop_front();
    data.pop_front();
  }
  return true;
}

}  // namespace nccl_net_test
