// The shared memory of two processes of a host: a file in memory that holds two rings.
//
// One process creates it. The other opens it by name and removes the name at once
// (MemoryFile::remove_name()), so nothing is left if both are killed later.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "leeway/status.h"
#include "transport/shm/memory_file.h"
#include "transport/shm/ring.h"

namespace leeway::transport {

class Segment {
 public:
  Segment() = default;

  // Makes two empty rings of `ring_bytes`, a power of two. Errors name the folder and what to do:
  //   kUnsupported        no such folder, or its files are not in memory
  //   kResourceExhausted  the folder is full
  static Result<Segment> create(const std::string& folder, const std::string& name,
                                std::size_t ring_bytes);

  // Opens the segment that the peer created. Returns kUnavailable if there is no such name (yet),
  // and kMismatch if it cannot be the work of create() by this user.
  static Result<Segment> open(const std::string& folder, const std::string& name);

  // The ring that the creator writes is number 0.
  RingMemory ring(int number) const;

 private:
  Segment(Mapping memory, std::size_t ring_bytes)
      : memory_(std::move(memory)), ring_bytes_(ring_bytes) {}
  static Result<Segment> map(const MemoryFile& file, std::size_t ring_bytes);

  Mapping memory_;
  std::size_t ring_bytes_ = 0;
};

// Checks that the folder's files are memory that this process may use. Has the errors of create().
Status check_shared_memory(const std::string& folder);

}  // namespace leeway::transport
