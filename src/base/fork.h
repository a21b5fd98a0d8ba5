// Handles what a child of this process inherits. A forked child has the parent's memory, but none
// of its threads. A child by fork() or exec() has the parent's descriptors, unless these are kept
// from it.
#pragma once

#include <cstdint>
#include <utility>

namespace leeway {

// Returns the number of forks that led to this process, counted from the first call on.
std::uint32_t fork_generation();

// Keeps a descriptor from this process's children: exec() closes it, and fork() puts /dev/null in
// its place. Otherwise a child that outlives this process holds its ports and locks, takes
// connections that nobody answers, and hides from the other side that this process has ended.
//
// Any thread may use it. The owner of the descriptor still has to close it, in a forked child too.
class KeptFromChildren {
 public:
  KeptFromChildren() = default;
  explicit KeptFromChildren(int descriptor);
  KeptFromChildren(KeptFromChildren&& other) noexcept { *this = std::move(other); }
  KeptFromChildren& operator=(KeptFromChildren&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  // Must run before the descriptor is closed, because a new descriptor may get the same number.
  ~KeptFromChildren() { release(); }
  void release();

 private:
  int descriptor_ = -1;
};

}  // namespace leeway
