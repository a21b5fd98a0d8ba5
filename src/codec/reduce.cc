// float32 sums go to the vector kernel; float16 and bfloat16 are widened a block at a time by the
// codec kernels; the other types are plain loops that the compiler vectorises.
#include "codec/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/contracts.h"
#include "base/limits.h"
#include "codec/float_kernels.h"
#include "codec/weighted_sum.h"

namespace leeway::codec {
namespace {

// Elements widened at a time: two float buffers of this size stay within the first-level cache.
constexpr std::size_t kBlockElements = 1024;
using FloatBlock = std::array<float, kBlockElements>;

template <typename T>
T load(const std::byte* from, std::size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(T value, std::byte* to, std::size_t i) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

// Signed overflow is undefined, unsigned wraps; nothing narrower than unsigned int, because shorts
// would be promoted to int.
template <typename T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    }
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    }
  }
};
struct Minimum {  // !(a <= b) is also true when either is NaN
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a <= b ? a : b;
  }
};
struct Maximum {
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a >= b ? a : b;
  }
};

template <typename T, typename Op>
void combine_plain(std::byte* accumulator, const std::byte* operand, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    store(Op::apply(load<T>(accumulator, i), load<T>(operand, i)), accumulator, i);
  }
}

template <typename Op>
void combine_widened(Codec codec, std::byte* accumulator, const std::byte* operand,
                     std::size_t count) {
  FloatBlock a;
  FloatBlock b;
  for (std::size_t done = 0; done < count; done += kBlockElements) {
    const std::size_t n = std::min(kBlockElements, count - done);
    decode_floats(codec, accumulator + 2 * done, std::span(a).first(n));
    decode_floats(codec, operand + 2 * done, std::span(b).first(n));
    for (std::size_t i = 0; i < n; ++i) a[i] = Op::apply(a[i], b[i]);
    encode_floats(codec, std::span(a).first(n), accumulator + 2 * done);
  }
}

template <typename Op>
void combine_with(DataType dtype, std::byte* accumulator, const std::byte* operand,
                  std::size_t count) {
  switch (dtype) {
    case DataType::f32:
      return combine_plain<float, Op>(accumulator, operand, count);
    case DataType::f64:
      return combine_plain<double, Op>(accumulator, operand, count);
    case DataType::f16:
      return combine_widened<Op>(Codec::fp16, accumulator, operand, count);
    case DataType::bf16:
      return combine_widened<Op>(Codec::bf16, accumulator, operand, count);
    case DataType::i8:
      return combine_plain<std::int8_t, Op>(accumulator, operand, count);
    case DataType::i32:
      return combine_plain<std::int32_t, Op>(accumulator, operand, count);
    case DataType::i64:
      return combine_plain<std::int64_t, Op>(accumulator, operand, count);
    case DataType::u8:
      return combine_plain<std::uint8_t, Op>(accumulator, operand, count);
  }
}

template <typename T>
void divide_plain(std::byte* values, std::size_t count, T n) {
  for (std::size_t i = 0; i < count; ++i) store(static_cast<T>(load<T>(values, i) / n), values, i);
}

// An int8 or uint8 is divided as an int: n may not fit the element type.
template <typename T>
void divide_small(std::byte* values, std::size_t count, int n) {
  for (std::size_t i = 0; i < count; ++i) store(static_cast<T>(load<T>(values, i) / n), values, i);
}

void divide_widened(Codec codec, std::byte* values, std::size_t count, float n) {
  FloatBlock block;
  for (std::size_t done = 0; done < count; done += kBlockElements) {
    const auto part = std::span(block).first(std::min(kBlockElements, count - done));
    decode_floats(codec, values + 2 * done, part);
    for (float& value : part) value /= n;
    encode_floats(codec, part, values + 2 * done);
  }
}

void sum_doubles(std::span<const std::byte* const> inputs, std::span<const double> scales,
                 std::byte* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    double sum = inputs.empty() ? 0.0 : scales[0] * load<double>(inputs[0], i);
    for (std::size_t j = 1; j < inputs.size(); ++j)
      sum = sum + scales[j] * load<double>(inputs[j], i);
    store(sum, out, i);
  }
}

void sum_floats(std::span<const std::byte* const> inputs, std::span<const double> scales,
                MutableByteSpan out) {
  std::array<float, limits::kPeersMax> rounded;
  std::transform(scales.begin(), scales.end(), rounded.begin(),
                 [](double scale) { return static_cast<float>(scale); });
  weighted_sum_floats(inputs, std::span(rounded).first(scales.size()), out);
}

void sum_widened(Codec codec, std::span<const std::byte* const> inputs,
                 std::span<const double> scales, std::byte* out, std::size_t count) {
  FloatBlock block;
  for (std::size_t done = 0; done < count; done += kBlockElements) {
    const auto part = std::span(block).first(std::min(kBlockElements, count - done));
    if (inputs.empty()) std::fill(part.begin(), part.end(), 0.0f);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      const auto scale = static_cast<float>(scales[j]);
      const std::byte* from = inputs[j] + 2 * done;
      j == 0 ? scale_floats(codec, from, scale, part) : accumulate_floats(codec, from, scale, part);
    }
    encode_floats(codec, part, out + 2 * done);
  }
}

}  // namespace

void combine(ReduceOp op, DataType dtype, MutableByteSpan accumulator, ByteSpan operand) {
  LEEWAY_ASSERT(accumulator.size() == operand.size());
  const std::size_t count = accumulator.size() / size_of(dtype);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return combine_with<Sum>(dtype, accumulator.data(), operand.data(), count);
    case ReduceOp::prod:
      return combine_with<Product>(dtype, accumulator.data(), operand.data(), count);
    case ReduceOp::min:
      return combine_with<Minimum>(dtype, accumulator.data(), operand.data(), count);
    case ReduceOp::max:
      return combine_with<Maximum>(dtype, accumulator.data(), operand.data(), count);
  }
}

void divide(DataType dtype, MutableByteSpan values, int n) {
  LEEWAY_ASSERT(n >= 1);
  std::byte* data = values.data();
  const std::size_t count = values.size() / size_of(dtype);
  switch (dtype) {
    case DataType::f32:
      return divide_plain<float>(data, count, static_cast<float>(n));
    case DataType::f64:
      return divide_plain<double>(data, count, n);
    case DataType::f16:
      return divide_widened(Codec::fp16, data, count, static_cast<float>(n));
    case DataType::bf16:
      return divide_widened(Codec::bf16, data, count, static_cast<float>(n));
    case DataType::i8:
      return divide_small<std::int8_t>(data, count, n);
    case DataType::i32:
      return divide_plain<std::int32_t>(data, count, n);
    case DataType::i64:
      return divide_plain<std::int64_t>(data, count, n);
    case DataType::u8:
      return divide_small<std::uint8_t>(data, count, n);
  }
}

void weighted_sum(DataType dtype, std::span<const std::byte* const> inputs,
                  std::span<const double> scales, MutableByteSpan out) {
  LEEWAY_ASSERT(inputs.size() == scales.size() && inputs.size() <= limits::kPeersMax);
  LEEWAY_ASSERT(is_floating(dtype));
  const std::size_t count = out.size() / size_of(dtype);
  switch (dtype) {
    case DataType::f64:
      return sum_doubles(inputs, scales, out.data(), count);
    case DataType::f16:
      return sum_widened(Codec::fp16, inputs, scales, out.data(), count);
    case DataType::bf16:
      return sum_widened(Codec::bf16, inputs, scales, out.data(), count);
    default:
      return sum_floats(inputs, scales, out);
  }
}

}  // namespace leeway::codec
