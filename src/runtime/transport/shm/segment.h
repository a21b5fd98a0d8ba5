// The memory of one pair of processes of a host: a file without a name, with two rings in it.
//
// One process creates it, the other opens it by name and removes the name at once. So nothing is
// left when both are killed later.
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
  ~Segment();
  Segment(Segment&& other) noexcept { *this = std::move(other); }
  Segment& operator=(Segment&& other) noexcept;

  // Makes two empty rings of `ring_bytes`, a power of two. Errors name the folder and what to do:
  //   kUnsupported        no such folder, or its files are not in memory
  //   kResourceExhausted  it is full
  static Result<Segment> create(const std::string& folder, const std::string& name,
                                std::size_t ring_bytes);

  // Opens the segment that the peer created. Returns kUnavailable if there is no such name (yet),
  // and kMismatch if it is not a file as processes of this user make it.
  static Result<Segment> open(const std::string& folder, const std::string& name);

  // Removes the name; the memory stays with the processes that have it. It is no error if there is
  // no such name.
  static void remove_name(const std::string& folder, const std::string& name);

  // The ring that the creator writes is number 0.
  RingMemory ring(int number) const;
  std::size_t ring_bytes() const { return ring_bytes_; }

 private:
  static Result<Segment> map(const MemoryFile& file, std::size_t ring_bytes);

  std::byte* memory_ = nullptr;
  std::size_t ring_bytes_ = 0;
};

// Returns ok if the folder's files are memory that this process may have, else create()'s error.
Status check_shared_memory(const std::string& folder);

}  // namespace leeway::transport
