// Compares the signal-to-noise ratio of every format on normal and lognormal data with another
// implementation's (CUDA's element conversions, 2^20 samples). The ratio is 10 log10(sum x^2 / sum
// (q - x)^2) dB, where x becomes q. A wrong scale rule, rounding or table entry changes it by more
// than the tolerances. Also tests the slope <x, q> / <x, x>, which is 1 for unbiased formats and
// known for formats that clip.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"

namespace leeway::codec {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kSamples = 1 << 18;  // a sample takes ten times as long here
#else
constexpr std::size_t kSamples = 1 << 20;
#endif

// Draws normal samples (Box-Muller on Philox), which are the same on every machine.
std::vector<float> normal_samples() {
  std::vector<float> samples;
  samples.reserve(kSamples);
  for (std::uint32_t i = 0; samples.size() < kSamples; ++i) {
    const PhiloxCounter words = philox({i, 0, 0, 0}, philox_key(2026));
    for (const std::size_t pair : {0u, 2u}) {
      const double radius = std::sqrt(-2 * std::log((words[pair] + 0.5) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * (words[pair + 1] + 0.5) * 0x1p-32;
      samples.push_back(static_cast<float>(radius * std::cos(angle)));
      samples.push_back(static_cast<float>(radius * std::sin(angle)));
    }
  }
  return samples;
}

// Returns samples of exp(N(0, 1)), each with the sign of another draw.
std::vector<float> lognormal_samples() {
  std::vector<float> samples = normal_samples();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool negative = philox({static_cast<std::uint32_t>(i), 1, 0, 0}, {})[0] >> 31 != 0;
    samples[i] = negative ? -std::exp(samples[i]) : std::exp(samples[i]);
  }
  return samples;
}

struct Expected {
  double decibel;
  double slope;
};
enum class Scale : std::uint8_t {
  packet,
  tensor
};  // tensor: the bound is the largest of all samples
struct Row {
  const char* codec;
  std::size_t packet;  // elements
  Scale scale;
  Expected normal;
  Expected lognormal;
};

constexpr std::size_t kBig = 16384;  // blocks have their own scales, so the packet does not matter
constexpr Row kRows[] = {
    {"bf16:nearest", kBig, Scale::packet, {55.59, 1.0000}, {55.60, 1.0000}},
    {"fp16:nearest", kBig, Scale::packet, {73.65, 1.0000}, {73.63, 1.0000}},
    {"fp8_e4m3:nearest", kBig, Scale::tensor, {31.54, 0.9993}, {31.50, 0.9993}},
    {"fp8_e4m3_block:nearest", kBig, Scale::packet, {31.80, 0.9995}, {33.07, 0.9997}},
    {"fp8_e5m2:nearest", kBig, Scale::tensor, {25.57, 0.9971}, {25.58, 0.9976}},
    {"fp8_e4m3:stochastic", kBig, Scale::tensor, {28.53, 1}, {28.46, 1}},
    {"fp8_e5m2:stochastic", kBig, Scale::tensor, {22.52, 1}, {22.59, 1}},
    {"mxfp8_e4m3:nearest:floor", kBig, Scale::packet, {30.67, 0.9973}, {29.30, 0.9933}},
    {"mxfp8_e4m3:nearest:ceil", kBig, Scale::packet, {31.54, 0.9993}, {31.50, 0.9993}},
    {"mxfp8_e5m2:nearest:floor", kBig, Scale::packet, {25.36, 0.9949}, {25.02, 0.9906}},
    {"mxfp6_e2m3:nearest:floor", kBig, Scale::packet, {30.96, 0.9989}, {28.98, 0.9980}},
    {"mxfp6_e3m2:nearest:floor", kBig, Scale::packet, {25.36, 0.9949}, {25.02, 0.9906}},
    {"mxfp4:nearest:floor", kBig, Scale::packet, {18.79, 0.9805}, {16.59, 0.9637}},
    {"mxfp4:nearest:ceil", kBig, Scale::packet, {18.75, 0.9899}, {15.94, 0.9893}},
    {"mxfp4:nearest:even", kBig, Scale::packet, {19.03, 0.9896}, {16.68, 0.9897}},
    {"mxfp4:stochastic", kBig, Scale::packet, {15.65, 1}, {12.81, 1}},
    {"nvfp4:nearest", kBig, Scale::tensor, {20.43, 0.9955}, {20.64, 0.9974}},
    {"nvfp4:nearest", 2048, Scale::packet, {20.43, 0.9954}, {20.67, 0.9976}},
    {"nvfp4:nearest", 256, Scale::packet, {20.44, 0.9955}, {20.72, 0.9976}},
    {"nvfp4_te:nearest", kBig, Scale::tensor, {20.43, 0.9955}, {20.64, 0.9974}},
    {"nvfp4_te:nearest", 2048, Scale::packet, {20.43, 0.9954}, {20.67, 0.9976}},
    {"nvfp4:stochastic", kBig, Scale::tensor, {16.55, 1}, {15.96, 1}},
    {"nvfp4:stochastic", 2048, Scale::packet, {16.54, 1}, {16.21, 1}},
    {"nvfp4_te:stochastic", kBig, Scale::tensor, {16.55, 1}, {15.96, 1}},
    {"nvfp4_te:stochastic", 2048, Scale::packet, {16.54, 1}, {16.21, 1}},
    {"luq", 2048, Scale::packet, {10.86, 1}, {11.12, 1}},
    {"nvfp4:nearest:rotate", kBig, Scale::packet, {20.44, 0.9954}, {20.38, 0.9952}},
    {"nvfp4:stochastic:rotate", kBig, Scale::packet, {16.53, 1}, {16.49, 1}},
    {"mxfp4:nearest:floor:rotate", kBig, Scale::packet, {18.79, 0.9805}, {18.84, 0.9786}},
};

struct Measured {
  double decibel;
  double slope;
  double slope_error;  // standard error of the slope if errors are independent and of mean zero
};

float largest_of(std::span<const float> samples) {
  float largest = 0;
  for (const float x : samples) largest = std::max(largest, std::fabs(x));
  return largest;
}

std::vector<float> sent(const Format& format, std::span<const float> samples, std::size_t packet) {
  std::vector<float> received(samples.size());
  std::vector<std::byte> bytes(format.encoded_bytes(packet));
  for (std::size_t at = 0; at < samples.size(); at += packet) {
    const Place place{.seed = 1, .step = 1, .first_element = at};
    encode(format, samples.subspan(at, packet), place, bytes);
    decode(format, bytes, place, std::span(received).subspan(at, packet));
  }
  return received;
}

Measured measure(const Row& row, std::span<const float> samples) {
  CodecOptions options = parse_codec(row.codec).value();
  if (row.scale == Scale::tensor) options.bound = largest_of(samples);
  const std::vector<float> received = sent(format_of(options, DataType::f32), samples, row.packet);
  double signal = 0, noise = 0, product = 0, spread = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto x = static_cast<double>(samples[i]);
    const double error = static_cast<double>(received[i]) - x;
    signal += x * x;
    noise += error * error;
    product += x * static_cast<double>(received[i]);
    spread += x * x * error * error;
  }
  return {10 * std::log10(signal / noise), product / signal, std::sqrt(spread) / signal};
}

void report(const Row& row, const Measured& measured, const Expected& expected) {
  std::printf("%-28s %6zu %-6s  dB %6.2f (%6.2f)  slope %.4f +- %.4f (%.4f)\n", row.codec,
              row.packet, row.scale == Scale::tensor ? "tensor" : "packet", measured.decibel,
              expected.decibel, measured.slope, measured.slope_error, expected.slope);
}

TEST(Sqnr, IsAsKnownOnNormalData) {
  const std::vector<float> samples = normal_samples();
  for (const Row& row : kRows) {
    const Measured measured = measure(row, samples);
    report(row, measured, row.normal);
    EXPECT_NEAR(measured.decibel, row.normal.decibel, 0.10) << row.codec << " " << row.packet;
    EXPECT_NEAR(measured.slope, row.normal.slope, 0.0005 + 4 * measured.slope_error) << row.codec;
  }
}

TEST(Sqnr, IsAsKnownOnLognormalData) {
  const std::vector<float> samples = lognormal_samples();
  for (const Row& row : kRows) {
    const Measured measured = measure(row, samples);
    report(row, measured, row.lognormal);
    EXPECT_NEAR(measured.decibel, row.lognormal.decibel, 0.30) << row.codec << " " << row.packet;
    EXPECT_NEAR(measured.slope, row.lognormal.slope, 0.0005 + 4 * measured.slope_error)
        << row.codec;
  }
}

// LUQ's noise under one common scale depends on the largest sample: it is 7 dB +- 2 dB between
// lognormal draws of 2^20. So it is compared with LUQ's variance (high - |x|)(|x| - low) instead,
// where `low` and `high` are the levels around |x| (arXiv 2112.10769).
double luq_decibel(std::span<const float> samples) {
  const double smallest = static_cast<double>(largest_of(samples)) / 64;
  double signal = 0, noise = 0;
  for (const float sample : samples) {
    const double x = std::fabs(static_cast<double>(sample));
    const double low = x < smallest ? 0 : smallest * std::exp2(std::floor(std::log2(x / smallest)));
    const double high = x < smallest ? smallest : 2 * low;
    signal += x * x;
    noise += (high - x) * (x - low);
  }
  return 10 * std::log10(signal / noise);
}

TEST(Sqnr, OfLuqUnderOneScaleIsWhatItsVarianceSays) {
  constexpr Row kLuq = {"luq", kBig, Scale::tensor, {10.88, 1}, {}};
  const std::vector<float> normal = normal_samples();
  const Measured measured = measure(kLuq, normal);
  report(kLuq, measured, kLuq.normal);
  EXPECT_NEAR(measured.decibel, kLuq.normal.decibel, 0.10);
  EXPECT_NEAR(measured.decibel, luq_decibel(normal), 0.05);

  const std::vector<float> lognormal = lognormal_samples();
  const Expected predicted = {luq_decibel(lognormal), 1};
  const Measured heavy_tailed = measure(kLuq, lognormal);
  report(kLuq, heavy_tailed, predicted);
  EXPECT_NEAR(heavy_tailed.decibel, predicted.decibel, 0.10);
  EXPECT_NEAR(heavy_tailed.slope, predicted.slope, 0.0005 + 4 * heavy_tailed.slope_error);
}

}  // namespace
}  // namespace leeway::codec
