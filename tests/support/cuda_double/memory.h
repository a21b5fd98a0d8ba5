// Memory of the double's devices. Device addresses are reserved and not accessible, so a processor
// that follows a device pointer faults. The double accesses the memory through a second mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/cuda_abi.h"

namespace cuda_double {

using leeway::device::cuda::Address;

// Prints the text and ends the process. Called when the tested code has misused CUDA.
[[noreturn]] void fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

class Memory {
 public:
  explicit Memory(int devices);

  // Returns memory filled with a pattern, or 0 if the device has too little left.
  Address allocate(int device, std::size_t bytes);
  // Frees memory. Returns false unless `memory` is an address that allocate() returned.
  bool free(Address memory);
  void* allocate_host(std::size_t bytes);
  bool free_host(void* memory);

  struct Kind {
    unsigned type = 0;  // CUmemorytype; 0 if the driver does not know it
    int device = -1;
  };
  Kind kind_of(Address memory);

  // Returns the address at which the double accesses memory: in the second mapping for device
  // memory, or `memory` itself for host memory. Calls fault() if the range touches device addresses
  // outside one live allocation.
  std::byte* resolve(Address memory, std::size_t bytes, const char* what);

 private:
  static constexpr std::size_t kDeviceBytes = std::size_t{4} << 30;
  static constexpr std::size_t kPage = 4096;

  struct Space {
    Address begin = 0;
    std::byte* alias = nullptr;
  };
  int device_of(Address memory) const;

  std::mutex mutex_;
  std::map<int, Space> spaces_;
  std::map<Address, std::size_t> allocated_;  // bytes asked for
  std::map<void*, std::size_t> host_;
};

}  // namespace cuda_double
