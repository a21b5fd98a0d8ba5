// Host memory that kernels can access, and that grows on demand.
#pragma once

#include <cstddef>

#include "device/driver.h"

namespace leeway::device_codec {

class PinnedMemory {
 public:
  PinnedMemory(const device::Driver& driver, device::cuda::Context context)
      : driver_(driver), context_(context) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { free(); }

  // Makes room for at least `bytes` bytes. Call it when no kernel uses the memory any more; its
  // contents are lost if it grows. Returns kResourceExhausted if CUDA has none left, or if ulimit
  // -l is too low.
  Status resize(std::size_t bytes);

  std::byte* data() const { return memory_; }
  // Returns the address that kernels use for `place`, an address in this memory.
  std::byte* on_device(const void* place) const {
    return mapped_ + (static_cast<const std::byte*>(place) - memory_);
  }

 private:
  void free();

  const device::Driver& driver_;
  const device::cuda::Context context_;
  std::byte* memory_ = nullptr;
  std::byte* mapped_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace leeway::device_codec
