// An owning set of bits with word access: the arrival ledger of a flow.
//
// resize() is the only call that may allocate, and only when it grows beyond every size before.
// Bits past size() are always zero, so whole words may be compared, counted and sent.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leeway {

class Bitmap {
 public:
  static constexpr std::size_t kWordBits = 64;

  Bitmap() = default;
  explicit Bitmap(std::size_t bits) { resize(bits); }

  // All bits become zero.
  void resize(std::size_t bits) {
    bits_ = bits;
    words_.assign((bits + kWordBits - 1) / kWordBits, 0);
  }

  std::size_t size() const { return bits_; }
  bool test(std::size_t i) const { return (words_[i / kWordBits] >> (i % kWordBits) & 1) != 0; }
  void set(std::size_t i) { words_[i / kWordBits] |= mask(i); }
  void clear(std::size_t i) { words_[i / kWordBits] &= ~mask(i); }
  void clear() { words_.assign(words_.size(), 0); }

  // Sets bit i; returns what it was.
  bool test_and_set(std::size_t i) {
    std::uint64_t& word = words_[i / kWordBits];
    const bool was_set = (word & mask(i)) != 0;
    word |= mask(i);
    return was_set;
  }

  std::size_t count() const {
    std::size_t total = 0;
    for (const std::uint64_t word : words_) total += static_cast<std::size_t>(std::popcount(word));
    return total;
  }
  bool all() const { return next_zero(0) == bits_; }

  // The first zero bit at or after `from`; size() if there is none.
  std::size_t next_zero(std::size_t from) const {
    if (from >= bits_) return bits_;
    std::size_t w = from / kWordBits;
    std::uint64_t zeros = ~words_[w] & (~std::uint64_t{0} << (from % kWordBits));
    while (zeros == 0) {
      if (++w == words_.size()) return bits_;
      zeros = ~words_[w];
    }
    const std::size_t found = w * kWordBits + static_cast<std::size_t>(std::countr_zero(zeros));
    return found < bits_ ? found : bits_;
  }

  std::size_t words() const { return words_.size(); }
  std::uint64_t word(std::size_t w) const { return words_[w]; }
  std::span<const std::uint64_t> span() const { return words_; }

 private:
  static constexpr std::uint64_t mask(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

  std::size_t bits_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace leeway
