// A block of uninitialised, cache-line aligned memory. It only grows, so later uses need no new
// allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "leeway/types.h"

namespace leeway {

// Interface of an object that must know the memory from which datagrams will be gathered. A
// transport's device may have to register that memory first.
class MemoryWatcher {
 public:
  virtual void on_allocated(ByteSpan memory) = 0;
  virtual void before_freed(ByteSpan memory) = 0;

 protected:
  ~MemoryWatcher() = default;
};

class GrowingBuffer {
 public:
  // `watcher` may be null. It is told when the memory grows. The destructor does not tell it,
  // because the watcher may be gone by then.
  explicit GrowingBuffer(MemoryWatcher* watcher = nullptr) : watcher_(watcher) {}

  // Makes room for at least `bytes` bytes. If the memory has to grow, its contents are lost.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    if (watcher_ != nullptr && capacity_ > 0) watcher_->before_freed({data(), capacity_});
    memory_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlign})));
    capacity_ = bytes;
    if (watcher_ != nullptr) watcher_->on_allocated({data(), capacity_});
  }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t capacity() const { return capacity_; }

  static constexpr std::size_t kAlign = 64;
  static constexpr std::size_t round_up(std::size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
  }

 private:
  struct Deleter {
    void operator()(std::byte* pointer) const {
      ::operator delete (pointer, std::align_val_t{kAlign});
    }
  };
  MemoryWatcher* watcher_;
  std::unique_ptr<std::byte, Deleter> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace leeway
