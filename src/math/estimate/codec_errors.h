// Errors of the formats that Codec::automatic can choose, on lognormal data, by the spread of
// log2|x|. They are measured with this library's own codecs as a reduction uses them (stochastic
// rounding below 16 bits). tests/unit/estimate/codec_choice_test.cc measures them again. It fails
// if an entry is off by more than 0.3 dB, and prints the table to put here.
#pragma once

#include <array>
#include <cstddef>

#include "leeway/codec.h"

namespace leeway::estimate {

// Standard deviations of log2|x|. Errors between them are interpolated in dB. Beyond them, the
// errors of the nearest end are used.
inline constexpr std::array kErrorSpreads = {0.25, 0.5, 0.75, 1.0, 1.5, 2.0,
                                             2.5,  3.0, 4.0,  5.0, 6.0};

using ErrorsBySpread = std::array<double, kErrorSpreads.size()>;

struct CodecErrors {
  Codec codec;
  // 10 log10 of (noise power / signal power), the median over packets of 2048 elements. At large
  // spreads, a mean would depend only on the one packet that has the largest element.
  ErrorsBySpread power_db;
  // 10 log10 of mean |Q(x) - x| / |x|.
  ErrorsBySpread relative_db;
};

inline constexpr std::array<CodecErrors, 7> kCodecErrors = {{
    {Codec::nvfp4,
     {-16.1, -16.7, -16.8, -16.5, -16.0, -16.1, -17.0, -17.9, -20.8, -21.6, -21.8},
     {-9.2, -9.3, -9.0, -7.9, -4.3, -1.8, -0.5, 0.4, 1.0, 1.1, 0.9}},
    {Codec::mxfp6_e2m3,
     {-28.1, -28.5, -28.2, -27.5, -26.0, -25.1, -25.0, -26.0, -27.6, -29.5, -29.8},
     {-15.2, -15.2, -14.6, -13.0, -8.6, -4.4, -2.0, -0.6, 0.7, 1.0, 1.0}},
    {Codec::mxfp6_e3m2,
     {-22.2, -22.5, -22.6, -22.5, -22.8, -22.6, -22.8, -23.3, -24.6, -22.6, -24.3},
     {-12.2, -12.2, -12.2, -12.2, -12.0, -10.2, -6.9, -4.2, -1.2, -0.0, 0.4}},
    {Codec::int8,
     {-45.2, -40.9, -37.2, -34.1, -28.8, -25.4, -23.3, -23.4, -25.5, -28.2, -30.6},
     {-23.2, -20.4, -17.5, -14.4, -7.7, -2.3, 0.2, 1.5, 1.7, 1.3, 0.8}},
    {Codec::fp8_e4m3_block,
     {-28.2, -28.7, -28.9, -29.1, -30.1, -31.6, -33.3, -35.5, -40.8, -44.2, -49.8},
     {-15.0, -15.3, -15.3, -15.3, -15.3, -15.3, -15.2, -15.0, -10.8, -5.6, -2.5}},
    {Codec::fp8_e5m2_block,
     {-22.1, -22.6, -22.9, -23.1, -24.1, -25.3, -27.0, -29.6, -34.5, -38.3, -42.1},
     {-12.0, -12.3, -12.3, -12.3, -12.2, -12.3, -12.3, -12.3, -12.3, -12.3, -11.7}},
    {Codec::bf16,
     {-55.2, -55.6, -55.6, -55.7, -55.7, -55.8, -56.4, -56.0, -56.3, -56.7, -57.1},
     {-28.5, -28.5, -28.5, -28.5, -28.5, -28.5, -28.5, -28.5, -28.5, -28.5, -28.5}},
}};

}  // namespace leeway::estimate
