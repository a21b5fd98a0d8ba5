// Text as a sequence of character numbers, cut into training and validation parts.
//
// The default corpus is the public-domain English text that Debian's bible-kjv package prints; any
// file will do. The characters are bytes: a text in another encoding than ASCII merely has more of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"

namespace leeway::tools::train {

class Corpus {
 public:
  // Length of the blocks that are dealt out to the two parts. It is large enough that few windows
  // cross a border between blocks. Every tenth block is for validation, so both parts have blocks
  // from all over the text.
  static constexpr std::size_t kBlockCharacters = 16384;
  static constexpr std::size_t kValidationEvery = 10;

  // Least length of a text: with less, a split into parts tells nothing.
  static constexpr std::size_t kCharactersMin = 10'000;

  // `name` is for people. Fails when the text is shorter than kCharactersMin.
  static Result<Corpus> from_text(std::string name, std::string_view text);
  static Result<Corpus> from_file(const std::string& path);
  // Makes the corpus from the output of `bible`, from first to last verse. Returns an error with
  // the remedy if the package is absent.
  static Result<Corpus> from_bible();

  const std::string& name() const { return name_; }
  int vocabulary() const { return static_cast<int>(characters_.size()); }
  std::span<const std::uint8_t> training() const { return training_; }
  std::span<const std::uint8_t> validation() const { return validation_; }
  char character(std::uint8_t token) const { return characters_[token]; }

  // Equal for equal texts; ranks compare it before they train together.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::string name_;
  std::string characters_;  // byte of each token, in order of byte value
  std::vector<std::uint8_t> training_;
  std::vector<std::uint8_t> validation_;
  std::uint64_t fingerprint_ = 0;
};

// Appends the `length` tokens from `start` on.
void append_window(std::span<const std::uint8_t> tokens, std::size_t start, std::size_t length,
                   std::vector<std::int64_t>& windows);

// Micro-batches of one rank: windows at positions that depend on (seed, step, rank, index) only, so
// that a run and its twin read the same text whatever the network does.
class BatchSampler {
 public:
  BatchSampler(std::span<const std::uint8_t> tokens, std::size_t window, std::size_t batch,
               std::uint64_t seed, int rank);
  // Valid until the next call.
  std::span<const std::int64_t> batch(std::uint64_t step);

 private:
  std::span<const std::uint8_t> tokens_;
  std::size_t window_;
  std::size_t batch_;
  std::uint64_t key_;
  std::vector<std::int64_t> windows_;
};

// Perplexity on `validation` of the character pairs counted in `training`: the best that a model
// can do which looks at one character only. A trained model must do better.
double bigram_perplexity(const Corpus& corpus);

}  // namespace leeway::tools::train
