// Functions by which tests control the driver double and inspect it. They find them by dlsym in its
// libcuda.so.1.
#pragma once

#include <cstdint>

#include "device/cuda_abi.h"

#pragma GCC visibility push(default)
extern "C" {

// How streams run from now on. Set it only when no stream has work. Environment variables set it at
// first: CUDA_DOUBLE_SEED (1), CUDA_DEVICE_MAX_CONNECTIONS (8), CUDA_DOUBLE_STREAM_WAITS (1),
// CUDA_DOUBLE_DEVICES (8; it does not change).
struct CudaDoubleSettings {
  std::uint64_t seed;
  int connections;   // 1: all streams of a device go through one queue, in the order of calls
  int stream_waits;  // if 0, streams cannot write and wait for values
};
void cuda_double_configure(const CudaDoubleSettings* settings);

// Enqueues work that touches device memory: `kernel` runs when the stream reaches it, and finds
// device memory at the addresses of cuda_double_alias(). May be captured.
leeway::device::cuda::Code cuda_double_launch(leeway::device::cuda::Stream stream,
                                              void (*kernel)(void*), void* argument);
// Address at which a kernel finds `bytes` of device memory. Ends the process if `memory` is no
// device memory.
void* cuda_double_alias(leeway::device::cuda::Address memory, std::uint64_t bytes);

// A kernel with one parameter, which cuLibraryGetKernel() finds in every image. `run` gets a copy
// of the parameter, and the number of warps. It finds device memory at the addresses of
// cuda_double_alias().
void cuda_double_register_kernel(const char* name, std::uint64_t parameter_bytes,
                                 void (*run)(const void* parameter, unsigned warps));

// From now on a call of CUDA by this thread ends the process, with the call's name.
void cuda_double_forbid_calls();

}  // extern "C"
#pragma GCC visibility pop
