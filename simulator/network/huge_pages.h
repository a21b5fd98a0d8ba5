// Memory for large arrays with random access, in pages of 2 MiB if the system has them. With small
// pages nearly every access would also wait for address translation (a TLB miss).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace leeway::sim {

// An allocator for standard containers. Arrays below one huge page come from the ordinary heap.
template <typename T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <typename Other>
  HugePages(const HugePages<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const bool large = bytes >= kPageBytes;
    const std::size_t unit = large ? kPageBytes : alignof(T);
    const std::size_t whole = (bytes + unit - 1) / unit * unit;
    void* const memory = std::aligned_alloc(unit < sizeof(void*) ? sizeof(void*) : unit, whole);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    // The system may refuse. Small pages work too, but slower.
    if (large) (void)madvise(memory, whole, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) {
    std::free(memory);
  }

  friend bool operator==(const HugePages&, const HugePages&) {
    return true;
  }

 private:
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;
};

}  // namespace leeway::sim
