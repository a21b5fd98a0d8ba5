// Host memory that kernels see, and that grows with what is asked for.
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

  // No kernel uses the memory any more, and what was in it is lost. kResourceExhausted: CUDA has
  // none left, or ulimit -l is too low.
  Status resize(std::size_t bytes);

  std::byte* data() const { return memory_; }
  // A place in it, as kernels see it.
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
