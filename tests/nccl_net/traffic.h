// Connections and messages, through one version of the plugin's interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "net.h"

namespace nccl_net_test {

// Time limit of the calls below, longer than any of them takes.
inline constexpr std::chrono::seconds kPatience(60);

// Both poll until the connection exists. They return null on an error or after kPatience.
void* connected(const Net& net, Handle handle);
void* accepted(const Net& net, void* listener);

// One connection. Both of its ends are in this process.
struct Pair {
  void* sender = nullptr;
  void* receiver = nullptr;
};
Pair make_pair(const Net& net);
void close(const Net& net, const Pair& pair);

// Both post a request, again and again as long as the plugin returns none. They return null on an
// error.
void* begin_send(const Net& net, void* comm, const std::vector<char>& data);
void* begin_receive(const Net& net, void* comm, std::vector<char>& data);
// Polls test() until the request is done. Returns test()'s last result. `size` becomes the size
// that test() gave.
int finish(const Net& net, void* request, int* size = nullptr);

std::vector<char> pattern(std::size_t size, int seed);

// send_stream() sends and receive_stream() receives `count` messages of `size` bytes, `depth` of
// them at a time; contents are checked. They return true if all messages arrived intact.
bool send_stream(const Net& net, void* comm, int count, std::size_t size, int depth);
bool receive_stream(const Net& net, void* comm, int count, std::size_t size, int depth);

}  // namespace nccl_net_test
