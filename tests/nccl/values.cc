#include "nccl/values.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace conformance {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned magnitude_max() const { return (1U << (exponent_bits + mantissa_bits)) - 1; }
};
constexpr Format kHalf{5, 10};
constexpr Format kBfloat16{8, 7};
constexpr Format kE4M3{4, 3};
constexpr Format kE5M2{5, 2};

// Returns true if `code` is a NaN. In each of these formats, a code with all bits set is a NaN.
bool is_nan(Format format, unsigned code) {
  const unsigned infinity = format.magnitude_max() >> format.mantissa_bits << format.mantissa_bits;
  const unsigned magnitude = code & format.magnitude_max();
  return format.mantissa_bits == kE4M3.mantissa_bits && format.exponent_bits == kE4M3.exponent_bits
             ? magnitude == format.magnitude_max()
             : magnitude > infinity;
}

// Encodes a NaN, or a number within the format's range.
unsigned encode(Format format, double value) {
  const unsigned sign =
      std::signbit(value) ? 1U << (format.exponent_bits + format.mantissa_bits) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isnan(value)) return sign | format.magnitude_max();
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);
  const int biased = std::max(exponent - 1 + format.bias(), 1);
  const double quantum = std::ldexp(1.0, biased - format.bias() - format.mantissa_bits);
  const auto steps = static_cast<unsigned>(std::nearbyint(magnitude / quantum));
  // A mantissa that is rounded up to a power of two carries into the exponent.
  return sign | ((static_cast<unsigned>(biased - 1) << format.mantissa_bits) + steps);
}

double decode(Format format, unsigned code) {
  if (is_nan(format, code)) return std::nan("");
  const unsigned mantissa = code & ((1U << format.mantissa_bits) - 1);
  const int exponent =
      static_cast<int>(code >> format.mantissa_bits & ((1U << format.exponent_bits) - 1));
  const bool negative = (code >> (format.exponent_bits + format.mantissa_bits) & 1) != 0;
  const unsigned significand = exponent == 0 ? mantissa : mantissa + (1U << format.mantissa_bits);
  const double magnitude =
      std::ldexp(significand, std::max(exponent, 1) - format.bias() - format.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

template <typename T>
void put(void* memory, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(memory) + index * sizeof value, &value, sizeof value);
}
template <typename T>
T got(const void* memory, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  constexpr std::size_t kBytes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

bool is_integer(ncclDataType_t type) {
  return type <= ncclUint64;
}

void store(ncclDataType_t type, void* memory, std::size_t index, double value) {
  switch (type) {
    case ncclInt8:
      return put(memory, index, static_cast<std::int8_t>(value));
    case ncclUint8:
      return put(memory, index, static_cast<std::uint8_t>(value));
    case ncclInt32:
      return put(memory, index, static_cast<std::int32_t>(value));
    case ncclUint32:
      return put(memory, index, static_cast<std::uint32_t>(value));
    case ncclInt64:
      return put(memory, index, static_cast<std::int64_t>(value));
    case ncclUint64:
      return put(memory, index, static_cast<std::uint64_t>(value));
    case ncclFloat16:
      return put(memory, index, static_cast<std::uint16_t>(encode(kHalf, value)));
    case ncclBfloat16:
      return put(memory, index, static_cast<std::uint16_t>(encode(kBfloat16, value)));
    case ncclFloat8e4m3:
      return put(memory, index, static_cast<std::uint8_t>(encode(kE4M3, value)));
    case ncclFloat8e5m2:
      return put(memory, index, static_cast<std::uint8_t>(encode(kE5M2, value)));
    case ncclFloat32:
      return put(memory, index, static_cast<float>(value));
    default:
      return put(memory, index, value);
  }
}

double load(ncclDataType_t type, const void* memory, std::size_t index) {
  switch (type) {
    case ncclInt8:
      return got<std::int8_t>(memory, index);
    case ncclUint8:
      return got<std::uint8_t>(memory, index);
    case ncclInt32:
      return got<std::int32_t>(memory, index);
    case ncclUint32:
      return got<std::uint32_t>(memory, index);
    case ncclInt64:
      return static_cast<double>(got<std::int64_t>(memory, index));
    case ncclUint64:
      return static_cast<double>(got<std::uint64_t>(memory, index));
    case ncclFloat16:
      return decode(kHalf, got<std::uint16_t>(memory, index));
    case ncclBfloat16:
      return decode(kBfloat16, got<std::uint16_t>(memory, index));
    case ncclFloat8e4m3:
      return decode(kE4M3, got<std::uint8_t>(memory, index));
    case ncclFloat8e5m2:
      return decode(kE5M2, got<std::uint8_t>(memory, index));
    case ncclFloat32:
      return got<float>(memory, index);
    default:
      return got<double>(memory, index);
  }
}

double rounded(ncclDataType_t type, double value) {
  double memory = 0;
  store(type, &memory, 0, value);
  return load(type, &memory, 0);
}

}  // namespace conformance
