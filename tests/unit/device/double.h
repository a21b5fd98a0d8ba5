// Loads the double of CUDA's driver for unit tests.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "device/driver.h"
#include "support/cuda_double/control.h"

namespace leeway::device {

inline const Driver& the_driver() {
  static const Driver* const driver = Driver::open(CUDA_DOUBLE).value();
  return *driver;
}

template <typename Function>
Function of_double(const char* name) {
  static void* const library = ::dlopen(CUDA_DOUBLE, RTLD_NOW);
  auto* const found = ::dlsym(library, name);
  if (found == nullptr) ADD_FAILURE() << name;
  return reinterpret_cast<Function>(found);
}

inline void configure(std::uint64_t seed, int connections, int stream_waits) {
  const CudaDoubleSettings settings{seed, connections, stream_waits};
  of_double<void (*)(const CudaDoubleSettings*)>("cuda_double_configure")(&settings);
}

// Copies from host to device, or back, at once.
inline void copy_now(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream stream) {
  ASSERT_EQ(the_driver().call.cuMemcpyAsync(to, from, bytes, stream), cuda::kSuccess);
  ASSERT_EQ(the_driver().call.cuStreamSynchronize(stream), cuda::kSuccess);
}

inline cuda::Address address(const void* memory) {
  return reinterpret_cast<cuda::Address>(memory);
}

}  // namespace leeway::device
