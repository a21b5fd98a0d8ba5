// A set of bits that owns its memory and gives access to whole words. It records which packets of a
// flow have arrived.
//
// Only resize() may allocate, and only when it grows beyond every size before. Up to 128 bits it
// never allocates, because the words of short flows lie inside the object. Bits past size() are
// always zero, so whole words may be compared, counted and sent.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace leeway {

class Bitmap {
 public:
  static constexpr std::size_t kWordBits = 64;

  Bitmap() = default;
  explicit Bitmap(std::size_t bits) { resize(bits); }
  Bitmap(Bitmap&&) = default;
  Bitmap& operator=(Bitmap&&) = default;
  Bitmap(const Bitmap& other) { *this = other; }
  Bitmap& operator=(const Bitmap& other) {
    if (this == &other) return *this;
    resize(other.size());
    std::copy_n(other.data(), words(), data());
    return *this;
  }

  // Changes the size to `bits` bits. All bits become zero.
  void resize(std::size_t bits) {
    const std::size_t count = (bits + kWordBits - 1) / kWordBits;
    const std::size_t room = many_ != nullptr ? room_ : few_.size();
    if (count > room) {
      many_ = std::make_unique_for_overwrite<std::uint64_t[]>(count);
      room_ = static_cast<std::uint32_t>(count);
    }
    bits_ = static_cast<std::uint32_t>(bits);
    clear();
  }

  std::size_t size() const { return bits_; }
  bool test(std::size_t i) const { return (data()[i / kWordBits] >> (i % kWordBits) & 1) != 0; }
  void set(std::size_t i) { data()[i / kWordBits] |= mask(i); }
  void clear(std::size_t i) { data()[i / kWordBits] &= ~mask(i); }
  void clear() { std::fill_n(data(), words(), 0); }

  // Sets bit i. Returns its value before that.
  bool test_and_set(std::size_t i) {
    std::uint64_t& word = data()[i / kWordBits];
    const bool was_set = (word & mask(i)) != 0;
    word |= mask(i);
    return was_set;
  }

  // Sets those bits of word `w` that are set in `bits`. None of them may lie beyond size().
  void set_in_word(std::size_t w, std::uint64_t bits) { data()[w] |= bits; }
  // Returns a word and sets it to zero.
  std::uint64_t take_word(std::size_t w) { return std::exchange(data()[w], 0); }

  std::size_t count() const {
    std::size_t total = 0;
    for (const std::uint64_t word : span()) total += static_cast<std::size_t>(std::popcount(word));
    return total;
  }
  bool all() const { return next_zero(0) == bits_; }

  // Returns the first zero bit at or after `from`, or size() if there is none.
  std::size_t next_zero(std::size_t from) const {
    if (from >= bits_) return bits_;
    std::size_t w = from / kWordBits;
    std::uint64_t zeros = ~word(w) & (~std::uint64_t{0} << (from % kWordBits));
    while (zeros == 0) {
      if (++w == words()) return bits_;
      zeros = ~word(w);
    }
    const std::size_t found = w * kWordBits + static_cast<std::size_t>(std::countr_zero(zeros));
    return found < bits_ ? found : bits_;
  }

  std::size_t words() const { return (bits_ + kWordBits - 1) / kWordBits; }
  std::uint64_t word(std::size_t w) const { return data()[w]; }
  std::span<const std::uint64_t> span() const { return {data(), words()}; }

 private:
  static constexpr std::uint64_t mask(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

  const std::uint64_t* data() const { return many_ != nullptr ? many_.get() : few_.data(); }
  std::uint64_t* data() { return many_ != nullptr ? many_.get() : few_.data(); }

  std::uint32_t bits_ = 0;
  std::uint32_t room_ = 0;                 // words at many_
  std::array<std::uint64_t, 2> few_{};     // the words, as long as many_ is null
  std::unique_ptr<std::uint64_t[]> many_;  // the words otherwise
};

}  // namespace leeway
