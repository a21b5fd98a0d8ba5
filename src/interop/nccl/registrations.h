// Memory that a program registered with one communicator, as a buffer or as a window. Handles are
// numbers. Registering the same memory again gives the same handle, which then must be removed as
// often as it was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "leeway/communicator.h"
#include "leeway/status.h"

namespace leeway::nccl {

class Registrations {
 public:
  // Registers memory and returns its handle, or null for null. If the transport refuses the memory,
  // `told` says why; the handle is valid all the same. `communicator` is null for memory of a
  // device, which no transport can register.
  void* add(Communicator* communicator, void* memory, std::size_t bytes, Status& told);
  // Returns kUnsupported if there is no such handle.
  Status remove(void* handle);
  // Returns the memory of a handle, or null if there is no such handle.
  void* memory_of(void* handle);
  void clear();

 private:
  struct Entry {
    void* memory = nullptr;
    std::size_t bytes = 0;
    int count = 0;
    MemoryRegistration registration;
  };
  std::mutex mutex_;
  std::map<std::uintptr_t, Entry> entries_;
  std::uintptr_t next_ = 1;
};

}  // namespace leeway::nccl
