// Replaces operator new and delete. They are in a file of their own, so that a compiler cannot
// inline one of them and not the other.
#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace leeway::sim {
namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

std::size_t allocations_so_far() {
  return allocations.load();
}

}  // namespace leeway::sim

void* operator new(std::size_t bytes) {
  leeway::sim::allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
