// Lets a host compiler compile the kernels of nccl-tests' verifiable.cu as functions. CMake changes
// some lines in a copy of that file: where addresses of kernels are taken, where kernels are
// launched, one atomic addition in PTX, one division by zero.
//
// A kernel runs as a grid of one block of one thread, so the kernel's loop over the elements of its
// block and thread covers all elements.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#define __launch_bounds__(...)

namespace host_kernels {

// A kernel, and a function that calls it with arguments that are known only by address.
struct Kernel {
  void (*call)(void* function, void** arguments);
  void* function;
};

template <typename... Arguments, std::size_t... I>
void call(void (*function)(Arguments...), void** arguments, std::index_sequence<I...>) {
  function(*static_cast<Arguments*>(arguments[I])...);
}

struct AddressOf {
  // A launch runs at once, so one pending kernel for each thread is enough.
  template <typename... Arguments>
  const void* operator%(void (*function)(Arguments...)) const {
    static thread_local Kernel kernel;
    kernel = {[](void* erased, void** arguments) {
                host_kernels::call(reinterpret_cast<void (*)(Arguments...)>(erased), arguments,
                                   std::index_sequence_for<Arguments...>());
              },
              reinterpret_cast<void*>(function)};
    return &kernel;
  }
};

inline cudaError_t launch(const void* kernel, void** arguments) {
  const auto& what = *static_cast<const Kernel*>(kernel);
  what.call(what.function, arguments);
  return cudaSuccess;
}

}  // namespace host_kernels

constexpr struct { unsigned x = 0; } blockIdx, threadIdx;
constexpr struct { unsigned x = 1; } gridDim, blockDim;
