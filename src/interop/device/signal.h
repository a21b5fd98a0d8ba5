// Words of pinned memory by which streams and the host tell each other the progress of a step.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "device/driver.h"

namespace leeway::device {

// A cache line of progress words. Each word only grows, and values are compared by their signed
// difference. So a wait for an older value is satisfied by a newer one, and a line may be reused
// while a thread or stream still has to read it for its old use.
struct alignas(64) Words {
  std::uint32_t ready = 0;     // written by a stream: the input is in staging
  std::uint32_t done = 0;      // written by the host: the network is done with the staging
  std::uint32_t released = 0;  // written by a stream: the output is in its place
  // For steps with kernels (transfer.h). `reached` is written by a stream: the input may be read,
  // and the staging belongs to the step.
  std::uint32_t reached = 0;
  std::uint32_t begun = 0;    // written by the host: staging says what to encode
  std::uint32_t landed = 0;   // written by the host: the contributions are in staging
  std::uint32_t reduced = 0;  // written by a stream: the sum is encoded, and in its place
};
using Word = std::uint32_t Words::*;

// One use of a line of words.
//
// The host writes value() for a step that goes on, and value() + 1 for one that was dropped. Either
// value ends a wait. Kernels do what staging says only if they find value().
class Signal {
 public:
  // Difference of values from one use of a line to the next.
  static constexpr std::uint32_t kStride = 2;

  Signal() = default;
  Signal(Words* words, cuda::Address mapped, std::uint32_t value)
      : words_(words), mapped_(mapped), value_(value) {}

  bool is(Word word) const {
    const std::uint32_t now = std::atomic_ref(words_->*word).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(now - value_) >= 0;
  }
  bool ready() const { return is(&Words::ready); }
  bool done() const { return is(&Words::done); }
  bool released() const { return is(&Words::released); }
  // Returns whether streams are done with the line and the staging of this use.
  bool settled() const { return ready() && released(); }
  // Writes a word. A thread or stream that reads the word also sees data that were written to the
  // staging before.
  void tell(Word word) const { store(word, value_); }
  void finish() const { tell(&Words::done); }
  // Drops the step, or the rest of it. Everything that waits for the host goes on.
  void drop() const {
    for (const Word word : {&Words::begun, &Words::landed, &Words::done}) store(word, value_ + 1);
  }
  // Address of a word for streams, and the value that they write and wait for.
  cuda::Address address(Word word) const {
    const auto* const line = reinterpret_cast<const std::byte*>(words_);
    const auto* const place = reinterpret_cast<const std::byte*>(&(words_->*word));
    return mapped_ + static_cast<cuda::Address>(place - line);
  }
  std::uint32_t value() const { return value_; }
  Words* words() const { return words_; }
  cuda::Address mapped() const { return mapped_; }

 private:
  void store(Word word, std::uint32_t value) const {
    std::atomic_ref(words_->*word).store(value, std::memory_order_release);
  }
  Words* words_ = nullptr;
  cuda::Address mapped_ = 0;
  std::uint32_t value_ = 0;
};

// Memory that the processor and all devices can access.
struct Pinned {
  std::byte* memory = nullptr;
  cuda::Address mapped = 0;
  std::size_t bytes = 0;
};
// Allocates memory that is never freed: freeing pinned memory waits for all streams, and a stream
// may wait for the calling thread. Returns kResourceExhausted if the limit of locked memory is
// reached, or no memory is left.
Result<Pinned> allocate_pinned(const Driver& driver, std::size_t bytes);

// The lines of progress words of one device. A line is used again when its last use is settled.
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
