// Connections and messages, by a version's functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "net.h"

namespace nccl_net_test {

// What none of these calls should come near to.
inline constexpr std::chrono::seconds kPatience(60);

// Polls until it stands. Null: an error, or no success within kPatience.
void* connected(const Net& net, Handle handle);
void* accepted(const Net& net, void* listener);

// One connection, both ends in this process.
struct Pair {
  void* sender = nullptr;
  void* receiver = nullptr;
};
Pair make_pair(const Net& net);
void close(const Net& net, const Pair& pair);

// Begins, again and again while it answers with no request. Null: an error.
void* begin_send(const Net& net, void* comm, const std::vector<char>& data);
void* begin_receive(const Net& net, void* comm, std::vector<char>& data);
// What test() says in the end; `size` is what it counted.
int finish(const Net& net, void* request, int* size = nullptr);

// Bytes that tell messages apart.
std::vector<char> pattern(std::size_t size, int seed);

// `count` messages of `size` bytes from `comm`, `depth` of them under way at a time; their contents
// are checked. Whether all went well.
bool send_stream(const Net& net, void* comm, int count, std::size_t size, int depth);
bool receive_stream(const Net& net, void* comm, int count, std::size_t size, int depth);

}  // namespace nccl_net_test
