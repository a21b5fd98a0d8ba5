// Uses the plugin as NCCL does: opens it by its path, looks up one version's table of functions,
// and makes every call through that table. Nothing else of Leeway is linked in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "interop/nccl_net/abi.h"

namespace nccl_net_test {

inline constexpr int kVersionFirst = 6;
inline constexpr int kVersionLast = 12;

enum : int {
  kSuccess = 0,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kRemoteError = 6,
};

using Handle = std::vector<char>;  // 128 bytes

// The plugin's functions, called through one version's table. Functions that a version lacks are
// empty.
struct Net {
  int version = 0;
  std::string name;
  std::function<int()> init;
  std::function<int(int* count)> devices;
  std::function<int(int device, leeway_nccl_net_properties_v12* out)> properties;
  std::function<int(int device, Handle& handle, void** listener)> listen;
  std::function<int(int device, Handle& handle, void** comm)> connect;
  std::function<int(void* listener, void** comm)> accept;
  std::function<int(void* comm, void* data, std::size_t size, int kind, void** out)> reg;
  std::function<int(void* comm, void* registration)> dereg;
  std::function<int(void* comm, const void* data, std::size_t size, void** request)> send;
  std::function<int(void* comm, void* data, std::size_t size, void** request)> receive;
  std::function<int(void* comm, int count, void** request)> receive_several;
  std::function<int(void* comm, void** request)> flush;
  std::function<int(void* request, int* done, int* size)> test;
  std::function<int(void* comm)> close_send;
  std::function<int(void* comm)> close_receive;
  std::function<int(void* listener)> close_listen;
  std::function<int()> finalize;  // since 11
};

// Opens the library as NCCL opens it. Ends the program if that fails.
void* open_plugin();
// Returns the functions of one version.
Net load(void* library, int version);
// Opens the plugin, only once in a process, and initialises it. Returns the functions of `version`.
Net load(int version = kVersionLast);

// Returns the lines that the plugin logged as WARN since the last call.
std::vector<std::string> take_warnings();

// Returns the path of this program, which tests start as helper.
std::string own_path();

}  // namespace nccl_net_test
