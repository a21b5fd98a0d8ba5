// Functions by which tests control and inspect the CUDA double (api.cc). Tests find them by dlsym()
// in its libcuda.so.1.
#pragma once

#include <cstdint>

#include "device/cuda_abi.h"

#pragma GCC visibility push(default)
extern "C" {

// How streams run. Settings may change only while no stream has work. Their initial values come
// from the environment: CUDA_DOUBLE_SEED (1), CUDA_DEVICE_MAX_CONNECTIONS (8),
// CUDA_DOUBLE_STREAM_WAITS (1). CUDA_DOUBLE_DEVICES (8) cannot be changed later.
struct CudaDoubleSettings {
  std::uint64_t seed;
  int connections;   // 1: all streams of a device go through one queue, in the order of calls
  int stream_waits;  // if 0, streams cannot write and wait for values
};
void cuda_double_configure(const CudaDoubleSettings* settings);

// Enqueues `kernel`, which runs when the stream reaches it. The kernel must access device memory
// through cuda_double_alias(). The launch may be captured.
leeway::device::cuda::Code cuda_double_launch(leeway::device::cuda::Stream stream,
                                              void (*kernel)(void*), void* argument);
// Returns the address at which a kernel accesses device memory. Ends the process unless `memory`
// begins `bytes` of device memory.
void* cuda_double_alias(leeway::device::cuda::Address memory, std::uint64_t bytes);

// Registers a kernel with one parameter, which cuLibraryGetKernel() then finds in every image.
// `run` is the kernel: it gets a copy of the parameter and the number of warps, and must access
// device memory through cuda_double_alias().
void cuda_double_register_kernel(const char* name, std::uint64_t parameter_bytes,
                                 void (*run)(const void* parameter, unsigned warps));

// From now on any CUDA call of this thread ends the process and prints the call's name.
void cuda_double_forbid_calls();

}  // extern "C"
#pragma GCC visibility pop
