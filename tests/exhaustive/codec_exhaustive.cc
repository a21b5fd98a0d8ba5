// Converts all 2^32 floats to every small element format. Compares each code with the nearest
// value, found independently, and with the CUDA toolkit's conversion if its headers exist. Also
// encodes every float up to the largest element by this processor's MX encoders. Takes minutes of
// processor time, so it is not a test but a program:
//
//   codec_exhaustive                all formats; exit status 1 if any code differs
//   codec_exhaustive --dump FORMAT  codes of every 2,017th float, a byte each, for other oracles
//                                   (ml_dtypes_oracle.py)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "codec/element.h"
#include "codec/minifloat.h"
#include "exhaustive/all_floats.h"
#include "exhaustive/encoder_pass.h"
#include "unit/codec/element_tables.h"

#ifdef LEEWAY_HAVE_CUDA_FLOATS
#include "unit/codec/cuda_elements.h"
#endif

namespace leeway::codec {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7F800000;
constexpr std::uint64_t kDumpStride = 2017;

// Returns the steps of an IEEE format, in which the code after the largest finite value is
// infinity. That code begins half a step above the largest finite value.
Steps steps_with_infinity(int mantissa_bits, int bias) {
  const int infinity = (2 * bias + 1) << mantissa_bits;
  return steps_between(float_magnitudes(mantissa_bits, bias, infinity));
}

// Returns the number of floats of both signs with a wrong code. For a NaN, `nan_is_right` decides;
// any other code is wrong if it differs from the staircase's.
template <typename Encode, typename NanIsRight>
std::uint64_t count_not_nearest(const Steps& steps, int sign_bit, Encode encode,
                                NanIsRight nan_is_right) {
  return sum_over_magnitudes([&](std::uint32_t begin, std::uint32_t end) {
    std::uint64_t wrong = 0;
    auto next = std::upper_bound(steps.begin(), steps.end(), begin);
    for (std::uint32_t bits = begin; bits < end; ++bits) {
      const int positive = encode(from_bits(bits));
      const int negative = encode(from_bits(bits | 0x80000000));
      if (bits > kInfinityBits) {
        wrong += !nan_is_right(positive) + !nan_is_right(negative);
        continue;
      }
      while (next != steps.end() && bits >= *next) ++next;
      const auto expected = static_cast<int>(next - steps.begin());
      wrong += (positive != expected) + (negative != (expected | sign_bit));
    }
    return wrong;
  });
}

// ---- one line per format ----

class Line {
 public:
  explicit Line(const char* name) : started_(std::chrono::steady_clock::now()) {
    std::printf("%-12s", name);
    std::fflush(stdout);
  }
  void compared(const char* oracle, std::uint64_t wrong) {
    std::printf("  %s: %llu differ", oracle, static_cast<unsigned long long>(wrong));
    std::fflush(stdout);
    wrong_ += wrong;
  }
  bool finish() const {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started_;
    std::printf("  (%.1f s)\n", seconds.count());
    return wrong_ == 0;
  }

 private:
  std::chrono::steady_clock::time_point started_;
  std::uint64_t wrong_ = 0;
};

// Checks one element format. The format is a template argument, so that its shifts and masks are
// constants in the loop. `encoder`: the codec whose blocks hold such elements, or native if none
// does.
template <Minifloat format>
bool check_element(const ElementTable& table, Codec encoder) {
  Line line(table.name.c_str());
  line.compared("nearest", count_not_nearest(
                               steps_between(table.magnitudes), table.sign_bit(),
                               [](float x) { return encode_nearest(format, x); },
                               [](int code) { return code == format.nan_code; }));
  if (encoder != Codec::native) {
    line.compared("encoder", count_encoder_differences(encoder, steps_between(table.magnitudes)));
  }
#ifdef LEEWAY_HAVE_CUDA_FLOATS
  if constexpr (cuda_has(format)) {
    line.compared("CUDA", sum_over_magnitudes([](std::uint32_t begin, std::uint32_t end) {
                    std::uint64_t wrong = 0;
                    for (std::uint32_t bits = begin; bits < end; ++bits) {
                      for (const float x : {from_bits(bits), from_bits(bits | 0x80000000)}) {
                        wrong += encode_nearest(format, x) != cuda_encode(format, x);
                      }
                    }
                    return wrong;
                  }));
  }
#endif
  return line.finish();
}

bool check_elements() {
  const std::vector<ElementTable>& tables = element_tables();
  bool right = check_element<kE4M3>(tables[0], Codec::mxfp8_e4m3);
  right &= check_element<kE5M2>(tables[1], Codec::mxfp8_e5m2);
  right &= check_element<kE2M3>(tables[2], Codec::mxfp6_e2m3);
  right &= check_element<kE3M2>(tables[3], Codec::mxfp6_e3m2);
  right &= check_element<kE2M1>(tables[4], Codec::mxfp4);
  return check_element<kInteger8>(tables[6], Codec::native) && right;
}

bool check_halves() {
  Line line("fp16");
  line.compared("nearest", count_not_nearest(
                               steps_with_infinity(10, 15), 0x8000,
                               [](float x) { return half_from_float(x).bits; },
                               [](int code) { return (code & 0x7FFF) > 0x7C00; }));
  return line.finish();
}

bool check_bfloat16() {
  Line line("bf16");
  line.compared("nearest", count_not_nearest(
                               steps_with_infinity(7, 127), 0x8000,
                               [](float x) { return bfloat16_from_float(x).bits; },
                               [](int code) { return (code & 0x7FFF) > 0x7F80; }));
  return line.finish();
}

int dump(std::string_view name) {
  for (const ElementTable& table : element_tables()) {
    if (table.name != name || !table.rounded_to_nearest) continue;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += kDumpStride) {
      std::putchar(encode_nearest(table.format, from_bits(static_cast<std::uint32_t>(bits))));
    }
    return 0;
  }
  std::fprintf(stderr, "error: unknown format; one of e4m3 e5m2 e2m3 e3m2 e2m1 int8\n");
  return 2;
}

int check_everything() {
#ifndef LEEWAY_HAVE_CUDA_FLOATS
  std::printf("CUDA toolkit not found when configured: compared with the nearest value only\n");
#endif
  bool right = check_elements();
  right &= check_halves();
  right &= check_bfloat16();
  std::printf("%s\n", right ? "all equal" : "DIFFERENT");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace leeway::codec

int main(int argc, char** argv) {
  if (argc == 1) return leeway::codec::check_everything();
  if (argc == 3 && std::string_view(argv[1]) == "--dump") return leeway::codec::dump(argv[2]);
  std::fprintf(stderr, "usage: codec_exhaustive [--dump FORMAT]\n");
  return 2;
}
