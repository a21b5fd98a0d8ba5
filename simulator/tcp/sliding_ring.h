// Values by rising number, such as a connection's segments in flight. Only the values in a window
// of numbers are kept.
//
// Memory grows only when the window is wider than ever before, to a power of two.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leeway::sim {

template <typename T>
class SlidingRing {
 public:
  explicit SlidingRing(std::size_t expected = 64) : places_(std::bit_ceil(expected)) {}

  // Returns the value of `number`, which must be in the window of the last make_room().
  T& operator[](std::uint64_t number) { return places_[number & (places_.size() - 1)]; }
  const T& operator[](std::uint64_t number) const { return places_[number & (places_.size() - 1)]; }

  // Moves the window to [begin, end). Values of numbers in both windows stay; others are undefined
  // until they are written.
  void make_room(std::uint64_t begin, std::uint64_t end) {
    const std::size_t old_size = places_.size();
    if (end - begin <= old_size) return;
    std::vector<T> wider(std::bit_ceil(static_cast<std::size_t>(end - begin)));
    for (std::uint64_t number = begin; number < begin + old_size; ++number) {
      wider[number & (wider.size() - 1)] = std::move((*this)[number]);
    }
    places_ = std::move(wider);
  }

 private:
  std::vector<T> places_;
};

}  // namespace leeway::sim
