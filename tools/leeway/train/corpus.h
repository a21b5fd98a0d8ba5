// A text as a sequence of character numbers, divided into a training and a validation part.
//
// The default corpus is the public-domain English text of Debian's package bible-kjv; any file will
// do. Characters are bytes, so a text that is not ASCII only has more kinds of them.
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
  // Length of the blocks that go to one part or the other. It is so large that few windows cross a
  // border. Every tenth block is for validation, so both parts come from all over the text.
  static constexpr std::size_t kBlockCharacters = 16384;
  static constexpr std::size_t kValidationEvery = 10;

  // Least length of a text; a shorter one has too little to validate with.
  static constexpr std::size_t kCharactersMin = 10'000;

  // `name` is shown to people. Returns an error if the text is shorter than kCharactersMin.
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

  // A hash of the text. Ranks compare it before they train together.
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

// Draws one rank's micro-batches. Positions depend on (seed, step, rank, index) only, so a run and
// its twin read the same text, whatever the network does.
class BatchSampler {
 public:
  BatchSampler(std::span<const std::uint8_t> tokens, std::size_t window, std::size_t batch,
               std::uint64_t seed, int rank);
  // The result is valid until the next call.
  std::span<const std::int64_t> batch(std::uint64_t step);

 private:
  std::span<const std::uint8_t> tokens_;
  std::size_t window_;
  std::size_t batch_;
  std::uint64_t key_;
  std::vector<std::int64_t> windows_;
};

// Returns the perplexity on the validation part of a model of character pairs, counted in the
// training part. No model that sees only the previous character does better, so a trained model
// must.
double bigram_perplexity(const Corpus& corpus);

}  // namespace leeway::tools::train
