// Handles what a child of this process inherits. A forked child has the parent's memory, but none
// of its threads. A forked child, and a program started by exec(), have the parent's descriptors,
// unless the descriptors are kept from them.
#pragma once

#include <cstdint>
#include <utility>

namespace leeway {

// Returns how many forks led to this process since the first call of this function.
std::uint32_t fork_generation();

// Keeps a descriptor from this process's children: exec() closes it, and fork() puts /dev/null in
// its place. Otherwise a child that outlives this process holds its ports and locks, takes
// connections that nobody answers, and hides from the other side that this process has ended.
//
// Any thread may use the class. The owner of the descriptor still closes it, in a forked child too.
class KeptFromChildren {
 public:
  KeptFromChildren() = default;
  explicit KeptFromChildren(int descriptor);
  KeptFromChildren(KeptFromChildren&& other) noexcept { *this = std::move(other); }
  KeptFromChildren& operator=(KeptFromChildren&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  // Must run before the descriptor is closed. Otherwise a new descriptor may get the same number,
  // and a forked child finds /dev/null in its place.
  ~KeptFromChildren() { release(); }
  void release();

 private:
  int descriptor_ = -1;
};

}  // namespace leeway
