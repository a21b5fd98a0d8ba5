// Independent tables of the small element formats. They hold every magnitude as a double, computed
// from the exponent bias and mantissa bits in the specifications (OCP OFP8 1.0, OCP MX 1.0), and
// are searched for the nearest. Doubles hold every magnitude and midpoint exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/minifloat.h"

namespace leeway::codec {

struct ElementTable {
  std::string name;
  Minifloat format;
  std::vector<double> magnitudes;  // ascending; the index is the code
  bool rounded_to_nearest = true;  // LUQ's levels are never rounded to, only drawn

  int sign_bit() const { return 1 << (format.code_bits - 1); }
  double midpoint_above(std::size_t code) const {
    return (magnitudes[code] + magnitudes[code + 1]) / 2;
  }
};

// Returns the magnitudes of codes 0 .. last of a float format. Numbers whose exponent field is not
// 0 have an implicit leading one.
inline std::vector<double> float_magnitudes(int mantissa_bits, int bias, int last) {
  std::vector<double> values;
  for (int code = 0; code <= last; ++code) {
    const int field = code >> mantissa_bits;
    const double fraction = std::ldexp(code & ((1 << mantissa_bits) - 1), -mantissa_bits);
    values.push_back(field == 0 ? std::ldexp(fraction, 1 - bias)
                                : std::ldexp(1 + fraction, field - bias));
  }
  return values;
}

inline std::vector<double> integer_magnitudes(int last) {
  std::vector<double> values;
  for (int value = 0; value <= last; ++value) values.push_back(value);
  return values;
}

inline const std::vector<ElementTable>& element_tables() {
  static const std::vector<ElementTable> kTables = {
      {"e4m3", kE4M3, float_magnitudes(3, 7, 0x7E)},
      {"e5m2", kE5M2, float_magnitudes(2, 15, 0x7B)},
      {"e2m3", kE2M3, float_magnitudes(3, 1, 0x1F)},
      {"e3m2", kE3M2, float_magnitudes(2, 3, 0x1F)},
      {"e2m1", kE2M1, {0, 0.5, 1, 1.5, 2, 3, 4, 6}},
      {"e3m0", kE3M0, {0, 1, 2, 4, 8, 16, 32, 64}, false},  // LUQ, in units of its smallest level
      {"int8", kInteger8, integer_magnitudes(127)},
  };
  return kTables;
}

// Midpoints between neighbouring magnitudes. Midpoint c lies between codes c and c + 1, so a value
// above it has a nearest code above c.
inline std::vector<double> midpoints(const ElementTable& table) {
  std::vector<double> middles;
  for (std::size_t code = 0; code + 1 < table.magnitudes.size(); ++code) {
    middles.push_back(table.midpoint_above(code));
  }
  return middles;
}

// Returns the nearest code of any float but NaN. Ties go to the even code, large values saturate.
inline int nearest_code(const ElementTable& table, const std::vector<double>& middles, float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  const auto at = std::lower_bound(middles.begin(), middles.end(), magnitude);
  auto code = static_cast<int>(at - middles.begin());
  if (at != middles.end() && *at == magnitude) code += code & 1;
  return std::signbit(x) ? code | table.sign_bit() : code;
}

}  // namespace leeway::codec
