// Connections and messages, with the functions of one version.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "net.h"

namespace nccl_net_test {

// Far longer than any of these calls takes.
inline constexpr std::chrono::seconds kPatience(60);

// Poll until the connection is established. Return null on an error, or without success within
// kPatience.
void* connected(const Net& net, Handle handle);
void* accepted(const Net& net, void* listener);

// One connection with both ends in this process.
struct Pair {
  void* sender = nullptr;
  void* receiver = nullptr;
};
Pair make_pair(const Net& net);
void close(const Net& net, const Pair& pair);

// Begin a request, and try again while the plugin returns none. Return null on an error.
void* begin_send(const Net& net, void* comm, const std::vector<char>& data);
void* begin_receive(const Net& net, void* comm, std::vector<char>& data);
// Returns the last result of test(). `size` is the bytes that it counted.
int finish(const Net& net, void* request, int* size = nullptr);

// Bytes that differ from message to message.
std::vector<char> pattern(std::size_t size, int seed);

// Send and receive `count` messages of `size` bytes by `comm`, `depth` of them in progress at a
// time; their contents are checked. Return true if all went well.
bool send_stream(const Net& net, void* comm, int count, std::size_t size, int depth);
bool receive_stream(const Net& net, void* comm, int count, std::size_t size, int depth);

}  // namespace nccl_net_test
