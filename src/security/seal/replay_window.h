// Remembers which of a peer's datagrams were opened, so that none is opened twice.
//
// It is a ring of words with a bit for each number (RFC 6479). The window moves by whole words, so
// it holds the latest 65,473 to 65,536 numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace leeway::seal {

class ReplayWindow {
 public:
  // Numbers that the window spans: 8 KiB a peer. At 10 Gb/s and 1,472 bytes that is 77 ms, more
  // than any network reorders.
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << 16;

  enum class Verdict : std::uint8_t { fresh, seen, too_old };

  // Looks up a number. It changes nothing, because the number's datagram is not authenticated yet.
  // Number 0 counts as too old.
  Verdict look(std::uint64_t number) const {
    if (number == 0) return Verdict::too_old;
    const std::uint64_t word = number / kBits;
    if (word > newest_) return Verdict::fresh;
    if (newest_ - word >= kWords) return Verdict::too_old;
    return (words_[word % kWords] >> number % kBits & 1) != 0 ? Verdict::seen : Verdict::fresh;
  }

  // Marks a number as opened. It was fresh, and its datagram is authenticated now.
  void commit(std::uint64_t number) {
    const std::uint64_t word = number / kBits;
    if (word > newest_) {
      const std::uint64_t steps = std::min<std::uint64_t>(word - newest_, kWords);
      for (std::uint64_t i = 0; i < steps; ++i) words_[(word - i) % kWords] = 0;
      newest_ = word;
    }
    words_[word % kWords] |= std::uint64_t{1} << number % kBits;
    largest_ = std::max(largest_, number);
  }

  // The largest number marked; 0 if there is none.
  std::uint64_t largest() const { return largest_; }

 private:
  static constexpr std::uint64_t kBits = 64;
  static constexpr std::uint64_t kWords = kNumbers / kBits;

  std::array<std::uint64_t, kWords> words_{};
  std::uint64_t newest_ = 0;  // the word of the largest number
  std::uint64_t largest_ = 0;
};

}  // namespace leeway::seal
