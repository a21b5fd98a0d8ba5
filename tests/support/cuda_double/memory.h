// Memory of the double's devices. Device addresses are address space that nobody may touch, so a
// processor that follows a device pointer faults. Only the double uses a second mapping, which has
// the pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/cuda_abi.h"

namespace cuda_double {

using leeway::device::cuda::Address;

// Prints the text and ends the process, because the test has found a fault.
[[noreturn]] void fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

class Memory {
 public:
  explicit Memory(int devices);

  // Returns memory filled with a pattern, or 0 if none is left.
  Address allocate(int device, std::size_t bytes);
  // Returns false if `memory` is not the beginning of device memory.
  bool free(Address memory);
  void* allocate_host(std::size_t bytes);
  bool free_host(void* memory);

  struct Kind {
    unsigned type = 0;  // CUmemorytype; 0 if the driver does not know it
    int device = -1;
  };
  Kind kind_of(Address memory);

  // Address at which the double reads and writes: the other mapping of device memory, or host
  // memory itself. Calls fault() if part of it is in device space, and not of one live allocation.
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
