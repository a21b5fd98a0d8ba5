// How targets that play a conversation read their input: they take numbers from its front, each of
// which chooses the next event. After the input's end, numbers are zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "leeway/types.h"

namespace leeway::fuzz {

class StepInput {
 public:
  explicit StepInput(ByteSpan rest) : rest_(rest) {}

  bool empty() const { return rest_.empty(); }
  template <typename T>
  T get() {
    T value{};
    const std::size_t bytes = std::min(sizeof(T), rest_.size());
    std::memcpy(&value, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  std::uint8_t byte() { return get<std::uint8_t>(); }
  // Returns the next `count` bytes, or fewer if the input ends before.
  ByteSpan take(std::size_t count) {
    const ByteSpan taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  ByteSpan rest_;
};

}  // namespace leeway::fuzz
