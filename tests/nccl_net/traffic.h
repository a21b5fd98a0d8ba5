// Connections and messages, through one version of the plugin's interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "net.h"

namespace nccl_net_test {

// Longer than any of these calls takes.
inline constexpr std::chrono::seconds kPatience(60);

// Poll until the connection exists. Return null on an error or after kPatience.
void* connected(const Net& net, Handle handle);
void* accepted(const Net& net, void* listener);

// One connection, both of whose ends are in this process.
struct Pair {
  void* sender = nullptr;
  void* receiver = nullptr;
};
Pair make_pair(const Net& net);
void close(const Net& net, const Pair& pair);

// Post a request, again and again while the plugin returns none. Return null on an error.
void* begin_send(const Net& net, void* comm, const std::vector<char>& data);
void* begin_receive(const Net& net, void* comm, std::vector<char>& data);
// Polls test() until the request is done. Returns its last result; `size` is the size that it gave.
int finish(const Net& net, void* request, int* size = nullptr);

std::vector<char> pattern(std::size_t size, int seed);

// Send and receive `count` messages of `size` bytes, `depth` of them at a time, and check their
// contents. Return true if all arrived intact.
bool send_stream(const Net& net, void* comm, int count, std::size_t size, int depth);
bool receive_stream(const Net& net, void* comm, int count, std::size_t size, int depth);

}  // namespace nccl_net_test
