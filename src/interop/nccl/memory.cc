// Functions that allocate memory, and that register memory of programs.
#include <algorithm>
#include <cstdlib>

#include "interop/nccl/calls.h"
#include "interop/nccl/context.h"
#include "interop/nccl/devices.h"

namespace leeway::nccl {
namespace {

// NCCL_WIN_REQUIRED_ALIGNMENT. Programs may register memory of ncclMemAlloc as a window.
constexpr std::size_t kAlignment = 4096;

// From this size on, cuMemAlloc gives whole pages of 2 MiB, aligned to 2 MiB. Smaller allocations
// share a page, at any multiple of 512 bytes. So sizes are rounded up to pages, as NCCL does.
constexpr std::size_t kDevicePage = std::size_t{2} << 20;

// Returns `bytes` rounded up to a multiple of `unit`, or 0 if they are too many for that.
std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return bytes <= SIZE_MAX - unit ? (bytes + unit - 1) / unit * unit : 0;
}

Code add(leeway_nccl_comm handle, const char* title, void* memory, std::size_t bytes, void** out) {
  auto found = Context::get().registry.find(handle, title);
  if (!found.ok()) return failed(found.status());
  if (out == nullptr) return null_argument(title, "handle");
  if (const Code code = (*found)->usable(title); code != kSuccess) return code;
  const auto communicator = (*found)->hold();
  if (communicator == nullptr) return failed((*found)->gone(), title);
  Status told;
  const device::Stager* const cuda = stager();
  const bool of_device = cuda != nullptr && cuda->driver().kind_of(memory).on_streams();
  *out = (*found)->registrations.add(of_device ? nullptr : communicator.get(), memory, bytes, told);
  if (!told.ok()) info(told.text());
  return kSuccess;
}

// Allocates on the calling thread's device, as NCCL does, or on the host if there is no driver.
Code allocate(std::size_t bytes, void** memory) {
  if (const device::Stager* const cuda = stager(); cuda != nullptr) {
    const device::Driver& driver = cuda->driver();
    const auto context = device::context_of(driver, -1);
    if (!context.ok()) return failed(kCudaError, context.status().text());
    const device::ContextScope scope(driver, context->context);
    const std::size_t pages = rounded_up(bytes, kDevicePage);
    if (pages == 0) return failed(kSystemError, "MemAlloc : out of memory");
    device::cuda::Address address = 0;
    if (const auto code = driver.call.cuMemAlloc(&address, pages); code != device::cuda::kSuccess)
      return failed(kCudaError, driver.error("MemAlloc : cuMemAlloc", code).text());
    *memory = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a device's
    return kSuccess;
  }
  const std::size_t aligned = rounded_up(bytes, kAlignment);
  *memory = aligned != 0 ? std::aligned_alloc(kAlignment, aligned) : nullptr;
  return *memory != nullptr ? kSuccess : failed(kSystemError, "MemAlloc : out of memory");
}

Code release(void* memory) {
  const device::Stager* const cuda = stager();
  if (cuda == nullptr || !cuda->driver().kind_of(memory).on_streams()) {
    std::free(memory);
    return kSuccess;
  }
  const device::Driver& driver = cuda->driver();
  const auto context = device::context_of(driver, driver.kind_of(memory).ordinal);
  if (!context.ok()) return failed(kCudaError, context.status().text());
  const device::ContextScope scope(driver, context->context);
  const auto code = driver.call.cuMemFree(reinterpret_cast<device::cuda::Address>(memory));
  return code == device::cuda::kSuccess
             ? kSuccess
             : failed(kCudaError, driver.error("MemFree : cuMemFree", code).text());
}

Code remove(leeway_nccl_comm handle, const char* title, void* registration) {
  auto found = Context::get().registry.find(handle, title);
  if (!found.ok()) return failed(found.status());
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
    return allocate(bytes, memory);
  });
}

leeway_nccl_result MemFree(void* memory) {
  return guarded([&] { return memory == nullptr ? kSuccess : release(memory); });
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
    if (!found.ok()) return failed(found.status());
    if (memory == nullptr) return null_argument(kTitle, "outUserPtr");
    *memory = (*found)->registrations.memory_of(window);
    if (*memory != nullptr) return kSuccess;
    return failed_with(kInvalidArgument, "%s : no such window", kTitle);
  });
}

}  // namespace calls
}  // namespace leeway::nccl
