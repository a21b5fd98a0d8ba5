// Memory that both ends of a pair map at different addresses, as two processes do.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "transport/shm/segment.h"

namespace leeway::transport {

// A name that no other test of this machine uses.
inline std::string fresh_name() {
  static std::atomic<int> count{0};
  return "leeway-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

struct SharedPair {
  explicit SharedPair(std::size_t ring_bytes = kRingBytesMin) {
    const std::string name = fresh_name();
    creator = Segment::create(kSharedMemoryFolder, name, ring_bytes).value();
    opener = Segment::open(kSharedMemoryFolder, name).value();
    MemoryFile::remove_name(kSharedMemoryFolder, name);
  }
  Segment creator;
  Segment opener;
};

}  // namespace leeway::transport
