#include "workload/normal_field.h"

#include <algorithm>
#include <array>

#include "engine/random_stream.h"
#include "workload/elementary.h"

namespace leeway::sim {
namespace {

constexpr std::size_t kLayers = 128;
constexpr std::size_t kWords = 4;              // words of a Philox block
constexpr double kTailBegin = 3.442619855899;  // begin of the tail with 128 layers ...
constexpr double kLayerArea = 9.91256303526217e-3;
constexpr double kOne = 0x1p24;  // a place's range to either side

// Stream tag of RandomStream(seed, rank << 32 | round, Purpose::workload), whose words are used
// here. Rare cases draw from a stream of their own.
constexpr std::uint32_t kStream =
    0xEu << 28 | std::uint32_t{static_cast<std::uint8_t>(Purpose::workload)} << 20;
constexpr std::uint32_t kRareStream = kStream | 1u << 19;

constexpr double square_root(double x) {
  double root = x;
  for (int step = 0; step < 64; ++step) root = (root + x / root) / 2;
  return root;
}
constexpr double bell(double x) {
  return portable_exp(-x * x / 2);
}

struct Ziggurat {
  std::array<std::int32_t, kLayers> certain{};  // places nearer to 0 are inside the next layer, too
  std::array<float, kLayers> width{};           // width of a layer, over 2^24
  std::array<double, kLayers> height{};         // the bell's at a layer's right end
};

constexpr Ziggurat make_ziggurat() {
  Ziggurat table;
  double right = kTailBegin;
  const double base = kLayerArea / bell(right);  // width of the base layer, tail included
  table.certain[0] = static_cast<std::int32_t>(right / base * kOne);
  table.width[0] = static_cast<float>(base / kOne);
  table.height[0] = 1;
  table.width[kLayers - 1] = static_cast<float>(right / kOne);
  table.height[kLayers - 1] = bell(right);
  for (std::size_t i = kLayers - 2; i > 0; --i) {
    const double left = square_root(-2 * portable_log(kLayerArea / right + bell(right)));
    table.certain[i + 1] = static_cast<std::int32_t>(left / right * kOne);
    table.width[i] = static_cast<float>(left / kOne);
    table.height[i] = bell(left);
    right = left;
  }
  table.certain[1] = 0;
  return table;
}

constexpr Ziggurat kZiggurat = make_ziggurat();

// A random word has 7 bits for the layer of the ziggurat. The rest is the place in the layer, in
// -2^24 .. 2^24 - 1.
constexpr std::size_t layer_of(std::uint32_t word) {
  return word % kLayers;
}
constexpr std::int32_t place_of(std::uint32_t word) {
  return static_cast<std::int32_t>(word) >> 7;
}
constexpr float value_of(std::uint32_t word) {
  return static_cast<float>(place_of(word)) * kZiggurat.width[layer_of(word)];
}
constexpr bool is_certain(std::uint32_t word) {
  const std::int32_t place = place_of(word);
  return (place < 0 ? -place : place) < kZiggurat.certain[layer_of(word)];
}

// Returns a number in (0, 1).
constexpr double open_unit(std::uint32_t word) {
  return (word + 0.5) * 0x1p-32;
}

}  // namespace

PhiloxCounter NormalField::words_of_block(std::uint64_t block) const {
  return philox({static_cast<std::uint32_t>(block),
                 kStream | static_cast<std::uint32_t>(block >> 32), round_, rank_},
                key_);
}

// Returns the normal number for a word whose place alone does not decide it, which is one word in
// 80. The place of such a word is in the part of a layer that the bell curve cuts, or in the tail.
float NormalField::rare(std::size_t element, std::uint32_t word) const {
  const auto low = static_cast<std::uint32_t>(element);
  const auto high = static_cast<std::uint32_t>(std::uint64_t{element} >> 32) << 8;
  for (std::uint32_t attempt = 0;; ++attempt) {
    const PhiloxCounter more = philox({low, kRareStream | high | attempt, round_, rank_}, key_);
    const std::size_t layer = layer_of(word);
    if (layer == 0) {
      const double beyond = -portable_log(open_unit(more[0])) / kTailBegin;
      if (-2 * portable_log(open_unit(more[1])) < beyond * beyond) continue;
      const auto x = static_cast<float>(kTailBegin + beyond);
      return place_of(word) < 0 ? -x : x;
    }
    const double x = value_of(word);
    const double low_side = kZiggurat.height[layer];
    const double high_side = kZiggurat.height[layer - 1];
    if (low_side + open_unit(more[0]) * (high_side - low_side) < bell(x)) return value_of(word);
    word = more[1];
    if (is_certain(word)) return value_of(word);
  }
}

float NormalField::at(std::size_t element) const {
  const std::uint32_t word = words_of_block(element / kWords)[element % kWords];
  return is_certain(word) ? value_of(word) : rare(element, word);
}

// Computes several Philox blocks side by side. Each word is in a 64-bit lane, so the compiler can
// vectorise.
void NormalField::words_of_batch(std::uint64_t first_block,
                                 std::array<std::uint32_t, kBatch>& out) const {
  using Lanes = std::array<std::uint64_t, kBatch / kWords>;
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  Lanes a, b, c, d;
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = (first_block + i) & kLow;
    b[i] = kStream | (first_block + i) >> 32;
    c[i] = round_;
    d[i] = rank_;
  }
  std::uint32_t key0 = key_[0];
  std::uint32_t key1 = key_[1];
  for (int step = 0; step < 10; ++step, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::uint64_t product0 = (a[i] & kLow) * 0xD2511F53;
      const std::uint64_t product1 = (c[i] & kLow) * 0xCD9E8D57;
      a[i] = product1 >> 32 ^ b[i] ^ key0;
      b[i] = product1;
      c[i] = product0 >> 32 ^ d[i] ^ key1;
      d[i] = product0;
    }
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    out[kWords * i] = static_cast<std::uint32_t>(a[i]);
    out[kWords * i + 1] = static_cast<std::uint32_t>(b[i]);
    out[kWords * i + 2] = static_cast<std::uint32_t>(c[i]);
    out[kWords * i + 3] = static_cast<std::uint32_t>(d[i]);
  }
}

void NormalField::add_to(std::span<float> out, float deviation) const {
  std::array<std::uint32_t, kBatch> words;
  for (std::size_t first = 0; first < out.size(); first += kBatch) {
    words_of_batch(first / kWords, words);
    const std::size_t count = std::min(kBatch, out.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      const bool certain = is_certain(words[i]);
      const float z = certain ? value_of(words[i]) : rare(first + i, words[i]);
      out[first + i] += deviation * z;
    }
  }
}

}  // namespace leeway::sim
