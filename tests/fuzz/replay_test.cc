// Runs a fuzz target without a fuzzer: on every input of its corpus, on variations of them, and on
// random bytes. Compiled once for each target, which gives the suite its name and the corpus its
// folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/philox.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace leeway::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kVariations = 4;  // changed copies of each corpus input
constexpr std::uint32_t kRandomBytesMax = 700;

std::vector<Bytes> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

std::uint64_t draw(std::uint32_t stream, std::uint32_t a, std::uint32_t b) {
  return keyed_hash(1, a, b, stream, 0);
}

// Runs the target. If it finds an error, it ends the process, so the test fails.
void run(const Bytes& input) {
  // The input is on the heap with its exact size, so an address sanitizer sees accesses beyond it.
  EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
}

TEST(FUZZ_SUITE, CorpusIsHandled) {
  const auto inputs = corpus();
  ASSERT_FALSE(inputs.empty()) << FUZZ_CORPUS;
  for (const Bytes& input : inputs) run(input);
}

TEST(FUZZ_SUITE, DamagedCorpusIsHandled) {
  const auto inputs = corpus();
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    for (std::uint32_t variation = 0; variation < kVariations; ++variation) {
      Bytes input = inputs[i];
      if (input.empty()) continue;
      const std::uint64_t place = draw(0, i, variation) % (8 * input.size());
      input[place / 8] ^= static_cast<std::uint8_t>(1u << place % 8);
      if (variation == 0) input.resize(place / 8);
      run(input);
    }
  }
}

TEST(FUZZ_SUITE, RandomBytesAreHandled) {
  for (std::uint32_t i = 0; i < FUZZ_RANDOM_INPUTS; ++i) {
    Bytes input(draw(1, i, 0) % kRandomBytesMax);
    for (std::uint32_t k = 0; k < input.size(); ++k) {
      input[k] = static_cast<std::uint8_t>(draw(2, i, k));
    }
    run(input);
  }
}

}  // namespace
}  // namespace leeway::fuzz
