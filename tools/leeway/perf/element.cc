#include "perf/element.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace leeway::tools::perf {
namespace {

// IEEE binary16: 5 exponent bits (bias 15), 10 fraction bits.
double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double magnitude = std::ldexp(fraction, -24);
  if (exponent == 31)
    magnitude = fraction == 0 ? INFINITY : NAN;
  else if (exponent > 0)
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Exact for integers up to 2048: they are zero or normal, so the exponent is rebiased and the
// fraction shortened.
std::uint16_t half_of_integer(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t sign = bits >> 31 << 15;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  return static_cast<std::uint16_t>(
      magnitude == 0 ? sign : sign | ((magnitude >> 13) - ((127 - 15) << 10)));
}

template <typename T>
T read(ConstTensorView tensor, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const T*>(tensor.data) + index, sizeof(T));
  return value;
}

template <typename T>
void write(TensorView tensor, std::size_t index, T value) {
  std::memcpy(static_cast<T*>(tensor.data) + index, &value, sizeof(T));
}

}  // namespace

double load_element(ConstTensorView tensor, std::size_t index) {
  switch (tensor.dtype) {
    case DataType::f32:
      return read<float>(tensor, index);
    case DataType::f64:
      return read<double>(tensor, index);
    case DataType::f16:
      return half_to_double(read<std::uint16_t>(tensor, index));
    case DataType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(tensor, index))
                                  << 16);
    case DataType::i8:
      return read<std::int8_t>(tensor, index);
    case DataType::i32:
      return read<std::int32_t>(tensor, index);
    case DataType::i64:
      return static_cast<double>(read<std::int64_t>(tensor, index));
    case DataType::u8:
      return read<std::uint8_t>(tensor, index);
  }
  return 0;
}

void store_element(TensorView tensor, std::size_t index, double value) {
  switch (tensor.dtype) {
    case DataType::f32:
      return write(tensor, index, static_cast<float>(value));
    case DataType::f64:
      return write(tensor, index, value);
    case DataType::f16:
      return write(tensor, index, half_of_integer(value));
    case DataType::bf16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      return write(tensor, index, static_cast<std::uint16_t>(bits >> 16));
    }
    case DataType::i8:
      return write(tensor, index, static_cast<std::int8_t>(value));
    case DataType::i32:
      return write(tensor, index, static_cast<std::int32_t>(value));
    case DataType::i64:
      return write(tensor, index, static_cast<std::int64_t>(value));
    case DataType::u8:
      return write(tensor, index, static_cast<std::uint8_t>(value));
  }
}

double integer_max(DataType type) {
  switch (type) {
    case DataType::i8:
      return 127;
    case DataType::u8:
      return 255;
    case DataType::bf16:
      return 256;
    case DataType::f16:
      return 2048;
    case DataType::f32:
      return 1 << 24;
    case DataType::i32:
      return 2147483647;
    case DataType::f64:
    case DataType::i64:
      return 9007199254740992;  // 2^53, the last integer a double steps to by one
  }
  return 0;
}

}  // namespace leeway::tools::perf
