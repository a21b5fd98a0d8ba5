// A block of uninitialised, cache-line aligned memory that keeps its largest size for the next use.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "leeway/types.h"

namespace leeway {

class Arena {
 public:
  // At least `bytes` bytes; contents are lost when it has to grow.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlign})));
    capacity_ = bytes;
  }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t capacity() const { return capacity_; }

  static constexpr std::size_t kAlign = 64;
  static constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

 private:
  struct Deleter {
    void operator()(std::byte* pointer) const { ::operator delete(pointer, std::align_val_t{kAlign}); }
  };
  std::unique_ptr<std::byte, Deleter> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace leeway
