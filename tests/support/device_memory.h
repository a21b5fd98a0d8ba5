// Memory on the device of the current CUDA context, for programs that run kernels. A CUDA error
// ends the program, because nothing can be tested without memory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "device/driver.h"

namespace leeway::device_codec {

class DeviceMemory {
 public:
  DeviceMemory(const device::Driver& driver, std::size_t bytes) : driver_(&driver), size_(bytes) {
    if (bytes > 0) must(driver.call.cuMemAlloc(&memory_, bytes), "cuMemAlloc");
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : driver_(other.driver_), size_(other.size_), memory_(std::exchange(other.memory_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() { must(driver_->call.cuMemFree(memory_), "cuMemFree"); }

  // Returns a device address, which the processor must not follow.
  std::byte* data() const {
    return reinterpret_cast<std::byte*>(memory_);  // NOLINT(performance-no-int-to-ptr)
  }
  std::size_t size() const { return size_; }

  // Copy to and from the beginning of the memory, after all work of the default stream.
  void put(std::span<const std::byte> bytes) const {
    copy(memory_, reinterpret_cast<device::cuda::Address>(bytes.data()), bytes.size());
  }
  void get(std::span<std::byte> bytes) const {
    copy(reinterpret_cast<device::cuda::Address>(bytes.data()), memory_, bytes.size());
  }
  std::vector<std::byte> get() const {
    std::vector<std::byte> bytes(size_);
    get(bytes);
    return bytes;
  }

 private:
  void must(device::cuda::Code code, const char* what) const {
    if (code == device::cuda::kSuccess) return;
    std::fprintf(stderr, "%s\n", driver_->error(what, code).c_str());
    std::abort();
  }
  void copy(device::cuda::Address to, device::cuda::Address from, std::size_t bytes) const {
    if (bytes == 0) return;
    must(driver_->call.cuMemcpyAsync(to, from, bytes, nullptr), "cuMemcpyAsync");
    must(driver_->call.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }

  const device::Driver* driver_;
  std::size_t size_;
  device::cuda::Address memory_ = 0;
};

}  // namespace leeway::device_codec
