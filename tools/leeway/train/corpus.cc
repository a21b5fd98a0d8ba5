#include "train/corpus.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/fnv.h"
namespace leeway::tools::train {
namespace {

constexpr const char* kBibleCommand = "bible -f gen1:1-rev22:21 2>/dev/null";
constexpr const char* kBibleRemedy =
    "the default corpus needs the `bible` command: apt-get install bible-kjv, or name a text with "
    "--corpus FILE";

// SplitMix64's finaliser: full avalanche, so that neighbouring counters give unrelated values.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::string read_all(std::FILE* stream) {
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stream)) {
    text.append(buffer.data(), count);
  }
  return text;
}

}  // namespace

Result<Corpus> Corpus::from_text(std::string name, std::string_view text) {
  if (text.size() < kCharactersMin) {
    return Status::error(StatusCode::kInvalidArgument,
                         "corpus %s holds %zu characters; at least %zu are needed", name.c_str(),
                         text.size(), kCharactersMin);
  }
  Corpus corpus;
  corpus.name_ = std::move(name);
  corpus.fingerprint_ = fnv1a(text);

  std::array<bool, 256> seen{};
  for (const char c : text) seen[static_cast<unsigned char>(c)] = true;
  std::array<std::uint8_t, 256> token_of{};
  for (std::size_t byte = 0; byte < seen.size(); ++byte) {
    if (!seen[byte]) continue;
    token_of[byte] = static_cast<std::uint8_t>(corpus.characters_.size());
    corpus.characters_.push_back(static_cast<char>(byte));
  }

  // Blocks of a short text are smaller, so that both parts get at least a few blocks.
  const std::size_t block = std::min(kBlockCharacters, text.size() / (4 * kValidationEvery));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool held_out = (i / block) % kValidationEvery == kValidationEvery - 1;
    (held_out ? corpus.validation_ : corpus.training_)
        .push_back(token_of[static_cast<unsigned char>(text[i])]);
  }
  return corpus;
}

Result<Corpus> Corpus::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Status::error(StatusCode::kInvalidArgument, "corpus %s cannot be read", path.c_str());
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return from_text(path, text);
}

Result<Corpus> Corpus::from_bible() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(kBibleCommand, "r"), pclose);
  if (!pipe)
    return Status::error(StatusCode::kResourceExhausted,
                         "no process could be started to read the corpus");
  const std::string text = read_all(pipe.get());
  if (text.size() < kCharactersMin)
    return Status::error(StatusCode::kUnavailable, "%s", kBibleRemedy);
  return from_text("bible-kjv", text);
}

void append_window(std::span<const std::uint8_t> tokens, std::size_t start, std::size_t length,
                   std::vector<std::int64_t>& windows) {
  const auto window = tokens.subspan(start, length);
  windows.insert(windows.end(), window.begin(), window.end());
}

BatchSampler::BatchSampler(std::span<const std::uint8_t> tokens, std::size_t window,
                           std::size_t batch, std::uint64_t seed, int rank)
    : tokens_(tokens),
      window_(window),
      batch_(batch),
      key_(mix(mix(seed) + static_cast<std::uint64_t>(rank))) {
  windows_.reserve(window * batch);
}

std::span<const std::int64_t> BatchSampler::batch(std::uint64_t step) {
  windows_.clear();
  const std::size_t starts = tokens_.size() - window_ + 1;
  for (std::size_t i = 0; i < batch_; ++i) {
    append_window(tokens_, mix(key_ ^ mix(step * batch_ + i)) % starts, window_, windows_);
  }
  return windows_;
}

double bigram_perplexity(const Corpus& corpus) {
  const auto vocabulary = static_cast<std::size_t>(corpus.vocabulary());
  // 0.1 is added to the count of each pair. Otherwise a pair that does not occur in training would
  // have infinite loss.
  constexpr double kSmoothing = 0.1;
  std::vector<double> pairs(vocabulary * vocabulary, kSmoothing);
  std::vector<double> firsts(vocabulary, kSmoothing * static_cast<double>(vocabulary));
  const auto training = corpus.training();
  for (std::size_t i = 0; i + 1 < training.size(); ++i) {
    pairs[training[i] * vocabulary + training[i + 1]] += 1.0;
    firsts[training[i]] += 1.0;
  }
  const auto validation = corpus.validation();
  double nats = 0.0;
  for (std::size_t i = 0; i + 1 < validation.size(); ++i) {
    nats -= std::log(pairs[validation[i] * vocabulary + validation[i + 1]] / firsts[validation[i]]);
  }
  return std::exp(nats / static_cast<double>(validation.size() - 1));
}

}  // namespace leeway::tools::train
