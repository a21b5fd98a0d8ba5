// Memory of NCCL's making, and memory that programs make known.
#include <algorithm>
#include <cstdlib>

#include "interop/nccl/calls.h"
#include "interop/nccl/context.h"

namespace leeway::nccl {
namespace {

// NCCL_WIN_REQUIRED_ALIGNMENT: what MemAlloc gives may become a window.
constexpr std::size_t kAlignment = 4096;

Code add(leeway_nccl_comm handle, const char* title, void* memory, std::size_t bytes, void** out) {
  auto found = Context::get().registry.find(handle, title);
  if (!found.ok()) return failed(code_of(found.status().code(), 0), found.status().text());
  if (out == nullptr) return null_argument(title, "handle");
  if (const Code code = (*found)->usable(title); code != kSuccess) return code;
  const auto communicator = (*found)->hold();
  if (communicator == nullptr) return failed((*found)->gone(), title);
  Status told;
  *out = (*found)->registrations.add(*communicator, memory, bytes, told);
  if (!told.ok()) info(told.text());
  return kSuccess;
}

Code remove(leeway_nccl_comm handle, const char* title, void* registration) {
  auto found = Context::get().registry.find(handle, title);
  if (!found.ok()) return failed(code_of(found.status().code(), 0), found.status().text());
  if (registration == nullptr) return kSuccess;
  const Status status = (*found)->registrations.remove(registration);
  return status.ok() ? kSuccess : failed(status, title);
}

}  // namespace

namespace calls {

leeway_nccl_result MemAlloc(void** memory, size_t bytes) {
  return guarded([&]() -> Code {
    if (memory == nullptr || bytes == 0) {
      return failed(kInvalidArgument, "MemAlloc : pointer is NULL or size is 0");
    }
    if (bytes > SIZE_MAX - kAlignment) return failed(kSystemError, "MemAlloc : out of memory");
    *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    return *memory != nullptr ? kSuccess : failed(kSystemError, "MemAlloc : out of memory");
  });
}

leeway_nccl_result MemFree(void* memory) {
  std::free(memory);
  return kSuccess;
}

leeway_nccl_result CommRegister(leeway_nccl_comm comm, void* memory, size_t bytes, void** handle) {
  return guarded([&] { return add(comm, "ncclCommRegister", memory, bytes, handle); });
}

leeway_nccl_result CommDeregister(leeway_nccl_comm comm, void* handle) {
  return guarded([&] { return remove(comm, "ncclCommRegister", handle); });
}

leeway_nccl_result CommWindowRegister(leeway_nccl_comm comm, void* memory, size_t bytes,
                                      leeway_nccl_window* window, int) {
  return guarded([&] { return add(comm, "ncclCommWindowRegister", memory, bytes, window); });
}

leeway_nccl_result CommWindowDeregister(leeway_nccl_comm comm, leeway_nccl_window window) {
  return guarded([&]() -> Code {
    if (window == nullptr) return kSuccess;
    return remove(comm, "ncclCommWindowDeregister", window);
  });
}

leeway_nccl_result WinGetUserPtr(leeway_nccl_comm comm, leeway_nccl_window window, void** memory) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "ncclWinGetUserPtr";
    auto found = Context::get().registry.find(comm, kTitle);
    if (!found.ok()) return failed(code_of(found.status().code(), 0), found.status().text());
    if (memory == nullptr) return null_argument(kTitle, "outUserPtr");
    *memory = (*found)->registrations.memory_of(window);
    if (*memory != nullptr) return kSuccess;
    return failed_with(kInvalidArgument, "%s : no such window", kTitle);
  });
}

}  // namespace calls
}  // namespace leeway::nccl
