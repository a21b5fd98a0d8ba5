// Words of pinned memory by which streams and the host tell each other how far a step is.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "device/driver.h"

namespace leeway::device {

// A cache line. Each word only grows, as a signed difference tells: a wait for an older value is
// satisfied by a newer one, so that a line may be used again while somebody still has to look.
struct alignas(64) Words {
  std::uint32_t ready = 0;     // a stream: the input lies in staging
  std::uint32_t done = 0;      // the host: the network is done with the staging
  std::uint32_t released = 0;  // a stream: the output lies where it belongs
};

// One use of such a line.
class Signal {
 public:
  Signal() = default;
  Signal(Words* words, cuda::Address mapped, std::uint32_t value)
      : words_(words), mapped_(mapped), value_(value) {}

  bool ready() const { return reached(words_->ready); }
  bool done() const { return reached(words_->done); }
  bool released() const { return reached(words_->released); }
  // Streams touch neither the line nor the staging of this use any more.
  bool settled() const { return ready() && released(); }
  // What was written to the staging before is seen by whoever sees this.
  void finish() const { std::atomic_ref(words_->done).store(value_, std::memory_order_release); }
  // Where streams see the words, and the value they write and wait for.
  cuda::Address ready_word() const { return mapped_ + offsetof(Words, ready); }
  cuda::Address done_word() const { return mapped_ + offsetof(Words, done); }
  cuda::Address released_word() const { return mapped_ + offsetof(Words, released); }
  std::uint32_t value() const { return value_; }
  Words* words() const { return words_; }

 private:
  bool reached(std::uint32_t& word) const {
    const std::uint32_t now = std::atomic_ref(word).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(now - value_) >= 0;
  }
  Words* words_ = nullptr;
  cuda::Address mapped_ = 0;
  std::uint32_t value_ = 0;
};

// Memory that the processor and all devices see.
struct Pinned {
  std::byte* memory = nullptr;
  cuda::Address mapped = 0;
  std::size_t bytes = 0;
};
// Never given back: to free pinned memory waits for all streams, and one may wait for us.
// kResourceExhausted: the limit of locked memory, or none left.
Result<Pinned> allocate_pinned(const Driver& driver, std::size_t bytes);

// The lines of one device. A line is used again when its last use is settled.
class Signals {
 public:
  explicit Signals(const Driver& driver) : driver_(driver) {}
  Result<Signal> take();

 private:
  Status grow();

  const Driver& driver_;
  std::vector<Signal> in_use_;
  std::vector<Signal> free_;
};

}  // namespace leeway::device
