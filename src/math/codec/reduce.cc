// float32 sums go to the vector kernel; narrower floats are widened a block at a time by the codec
// kernels; the other types are plain loops that the compiler vectorises.
#include "codec/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/contracts.h"
#include "base/limits.h"
#include "codec/finite.h"
#include "codec/float8.h"
#include "codec/float_kernels.h"
#include "codec/load_store.h"
#include "codec/weighted_sum.h"

namespace leeway::codec {
namespace {

// Elements reduced at a time: two buffers of this size stay within the first-level cache.
constexpr std::size_t kBlockElements = 1024;
using FloatBlock = std::array<float, kBlockElements>;

// The type in which integers wrap: unsigned, because signed overflow is undefined, and no narrower
// than unsigned int, because shorts would be promoted to int.
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
struct Minimum {  // comparisons with NaN fail, so only a number replaces a NaN
  template <typename T>
  static T apply(T a, T b) {
    return b != b || a <= b ? a : b;
  }
};
struct Maximum {
  template <typename T>
  static T apply(T a, T b) {
    return b != b || a >= b ? a : b;
  }
};
struct And {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct ExclusiveOr {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Descriptions of element types: how a block is read into the type that computes, folded into a
// result, and written back.

template <typename T>
struct Plain {
  using Value = T;
  static constexpr std::size_t kBytes = sizeof(T);
  static void read(const std::byte* from, std::span<T> values) {
    std::memcpy(values.data(), from, values.size_bytes());
  }
  template <typename Op>
  static void fold(const std::byte* from, std::span<T> result) {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = Op::apply(result[i], load<T>(from + i * sizeof(T)));
  }
  static void write(std::span<const T> values, std::byte* to) {
    std::memcpy(to, values.data(), values.size_bytes());
  }
};

template <DataType type>
struct Widened {
  using Value = float;
  static constexpr std::size_t kBytes = size_of(type);
  static void read(const std::byte* from, std::span<float> values) {
    if constexpr (kBytes == 1) return decode_float8(type, from, values);
    decode_floats(type == DataType::f16 ? Codec::fp16 : Codec::bf16, from, values);
  }
  template <typename Op>
  static void fold(const std::byte* from, std::span<float> result) {
    FloatBlock operand;
    read(from, std::span(operand).first(result.size()));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = Op::apply(result[i], operand[i]);
  }
  static void write(std::span<const float> values, std::byte* to) {
    if constexpr (kBytes == 1) return encode_float8(type, values, to);
    encode_floats(type == DataType::f16 ? Codec::fp16 : Codec::bf16, values, to);
  }
};

struct Truth {
  using Value = std::uint8_t;
  static constexpr std::size_t kBytes = 1;
  static std::uint8_t truth_of(std::byte byte) { return byte != std::byte{0} ? 1 : 0; }
  static void read(const std::byte* from, std::span<std::uint8_t> values) {
    std::transform(from, from + values.size(), values.begin(), truth_of);
  }
  template <typename Op>
  static void fold(const std::byte* from, std::span<std::uint8_t> result) {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = Op::apply(result[i], truth_of(from[i]));
  }
  static void write(std::span<const std::uint8_t> values, std::byte* to) {
    std::memcpy(to, values.data(), values.size());
  }
};

template <typename T>
void divide(std::span<T> values, std::size_t n) {
  // A narrow integer is divided as an int: n may not fit the element type.
  using Divisor = std::conditional_t<std::is_floating_point_v<T>, T, std::common_type_t<T, int>>;
  for (T& value : values) value = static_cast<T>(value / static_cast<Divisor>(n));
}

template <typename Element, typename Op>
void reduce_elements(std::span<const std::byte* const> inputs, bool average, MutableByteSpan out) {
  std::array<typename Element::Value, kBlockElements> block;
  for (std::size_t at = 0; at < out.size(); at += kBlockElements * Element::kBytes) {
    const std::size_t elements = std::min(kBlockElements, (out.size() - at) / Element::kBytes);
    const std::span result = std::span(block).first(elements);
    Element::read(inputs[0] + at, result);
    for (const std::byte* input : inputs.subspan(1)) Element::template fold<Op>(input + at, result);
    if (average) divide(result, inputs.size());
    Element::write(result, out.data() + at);
  }
}

bool is_integer(DataType dtype) {
  return !is_floating(dtype) && dtype != DataType::boolean;
}

// Calls use(Plain<T>()) for an integer type.
template <typename Use>
void with_integer(DataType dtype, Use use) {
  switch (dtype) {
    case DataType::i8:
      return use(Plain<std::int8_t>());
    case DataType::i32:
      return use(Plain<std::int32_t>());
    case DataType::i64:
      return use(Plain<std::int64_t>());
    case DataType::u8:
      return use(Plain<std::uint8_t>());
    case DataType::u32:
      return use(Plain<std::uint32_t>());
    case DataType::u64:
      return use(Plain<std::uint64_t>());
    default:
      LEEWAY_ASSERT(is_integer(dtype));
  }
}

template <typename Use>
void with_floating(DataType dtype, Use use) {
  switch (dtype) {
    case DataType::f32:
      return use(Plain<float>());
    case DataType::f64:
      return use(Plain<double>());
    case DataType::f16:
      return use(Widened<DataType::f16>());
    case DataType::bf16:
      return use(Widened<DataType::bf16>());
    case DataType::f8e4m3:
      return use(Widened<DataType::f8e4m3>());
    case DataType::f8e5m2:
      return use(Widened<DataType::f8e5m2>());
    default:
      LEEWAY_ASSERT(is_floating(dtype));
  }
}

template <typename Op>
void reduce_numbers(DataType dtype, std::span<const std::byte* const> inputs, bool average,
                    MutableByteSpan out) {
  const auto use = [&](auto element) {
    reduce_elements<decltype(element), Op>(inputs, average, out);
  };
  is_floating(dtype) ? with_floating(dtype, use) : with_integer(dtype, use);
}

template <typename Op>
void reduce_bits(DataType dtype, std::span<const std::byte* const> inputs, MutableByteSpan out) {
  if (dtype == DataType::boolean) return reduce_elements<Truth, Op>(inputs, false, out);
  with_integer(dtype,
               [&](auto element) { reduce_elements<decltype(element), Op>(inputs, false, out); });
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
}

// Returns the bitwise operation that reduces booleans in the same way.
ReduceOp of_truths(ReduceOp op) {
  if (op == ReduceOp::sum || op == ReduceOp::max) return ReduceOp::bor;
  return op == ReduceOp::prod || op == ReduceOp::min ? ReduceOp::band : op;
}

template <typename T>
void multiply_integers(T factor, ByteSpan in, std::byte* out) {
  for (std::size_t at = 0; at + sizeof(T) <= in.size(); at += sizeof(T))
    store(out + at, Product::apply(factor, load<T>(in.data() + at)));
}

void sum_doubles(std::span<const std::byte* const> inputs, std::span<const double> scales,
                 std::byte* out, std::size_t count) {
  for (std::size_t at = 0; at < count * sizeof(double); at += sizeof(double)) {
    double sum = inputs.empty() ? 0.0 : scales[0] * load<double>(inputs[0] + at);
    for (std::size_t j = 1; j < inputs.size(); ++j)
      sum = sum + scales[j] * load<double>(inputs[j] + at);
    store(out + at, sum);
  }
}

bool sum_floats(std::span<const std::byte* const> inputs, std::span<const double> scales,
                MutableByteSpan out, bool check) {
  std::array<float, limits::kPeersMax> rounded;
  std::transform(scales.begin(), scales.end(), rounded.begin(),
                 [](double scale) { return static_cast<float>(scale); });
  return weighted_sum_floats(inputs, std::span(rounded).first(scales.size()), out, check);
}

// Adds a scaled input of a block to the sum. The first input replaces the sum.
template <typename Element>
void add_scaled(const std::byte* from, float scale, bool first, std::span<float> sum) {
  if constexpr (Element::kBytes == 1) {
    FloatBlock values;
    Element::read(from, std::span(values).first(sum.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    first ? scale_floats(Codec::fp32, bytes, scale, sum)
          : accumulate_floats(Codec::fp32, bytes, scale, sum);
  } else {
    constexpr Codec kCodec =
        std::is_same_v<Element, Widened<DataType::f16>> ? Codec::fp16 : Codec::bf16;
    first ? scale_floats(kCodec, from, scale, sum) : accumulate_floats(kCodec, from, scale, sum);
  }
}

template <typename Element>
void sum_widened(std::span<const std::byte* const> inputs, std::span<const double> scales,
                 MutableByteSpan out) {
  FloatBlock block;
  for (std::size_t at = 0; at < out.size(); at += kBlockElements * Element::kBytes) {
    const auto sum =
        std::span(block).first(std::min(kBlockElements, (out.size() - at) / Element::kBytes));
    if (inputs.empty()) std::fill(sum.begin(), sum.end(), 0.0f);
    for (std::size_t j = 0; j < inputs.size(); ++j)
      add_scaled<Element>(inputs[j] + at, static_cast<float>(scales[j]), j == 0, sum);
    Element::write(sum, out.data() + at);
  }
}

}  // namespace

bool is_defined(ReduceOp op, DataType dtype) {
  if (is_bitwise(op)) return !is_floating(dtype);
  return dtype != DataType::boolean || (op != ReduceOp::avg && op != ReduceOp::premul_sum);
}

void reduce(ReduceOp op, DataType dtype, std::span<const std::byte* const> inputs,
            MutableByteSpan out) {
  LEEWAY_ASSERT(!inputs.empty() && is_defined(op, dtype));
  switch (dtype == DataType::boolean ? of_truths(op) : op) {
    case ReduceOp::sum:
    case ReduceOp::premul_sum:
      return reduce_numbers<Sum>(dtype, inputs, false, out);
    case ReduceOp::avg:
      return reduce_numbers<Sum>(dtype, inputs, true, out);
    case ReduceOp::prod:
      return reduce_numbers<Product>(dtype, inputs, false, out);
    case ReduceOp::min:
      return reduce_numbers<Minimum>(dtype, inputs, false, out);
    case ReduceOp::max:
      return reduce_numbers<Maximum>(dtype, inputs, false, out);
    case ReduceOp::band:
      return reduce_bits<And>(dtype, inputs, out);
    case ReduceOp::bor:
      return reduce_bits<Or>(dtype, inputs, out);
    case ReduceOp::bxor:
      return reduce_bits<ExclusiveOr>(dtype, inputs, out);
  }
}

bool is_factor(const Scalar& factor, DataType dtype) {
  if (dtype == DataType::boolean) return false;
  if (is_floating(dtype)) return true;
  bool fits = false;
  with_integer(dtype,
               [&](auto element) { fits = factor.fits<typename decltype(element)::Value>(); });
  return fits;
}

void multiply(DataType dtype, const Scalar& factor, ByteSpan in, MutableByteSpan out) {
  LEEWAY_ASSERT(in.size() == out.size() && is_factor(factor, dtype));
  if (is_floating(dtype)) {
    const std::byte* const input = in.data();
    const double scale = dtype == DataType::f64 ? factor.as<double>() : factor.as<float>();
    return weighted_sum(dtype, {&input, 1}, {&scale, 1}, out);
  }
  with_integer(dtype, [&](auto element) {
    multiply_integers(factor.as<typename decltype(element)::Value>(), in, out.data());
  });
}

void weighted_sum(DataType dtype, std::span<const std::byte* const> inputs,
                  std::span<const double> scales, MutableByteSpan out) {
  LEEWAY_ASSERT(inputs.size() == scales.size() && inputs.size() <= limits::kPeersMax);
  switch (dtype) {
    case DataType::f64:
      return sum_doubles(inputs, scales, out.data(), out.size() / sizeof(double));
    case DataType::f32:
      sum_floats(inputs, scales, out, false);
      return;
    case DataType::f16:
      return sum_widened<Widened<DataType::f16>>(inputs, scales, out);
    case DataType::bf16:
      return sum_widened<Widened<DataType::bf16>>(inputs, scales, out);
    case DataType::f8e4m3:
      return sum_widened<Widened<DataType::f8e4m3>>(inputs, scales, out);
    case DataType::f8e5m2:
      return sum_widened<Widened<DataType::f8e5m2>>(inputs, scales, out);
    default:
      LEEWAY_ASSERT(is_floating(dtype));
  }
}

// Sums float32 and checks the sums in one pass. Other types are checked in a second pass.
bool weighted_sum_checked(DataType dtype, std::span<const std::byte* const> inputs,
                          std::span<const double> scales, MutableByteSpan out) {
  LEEWAY_ASSERT(inputs.size() == scales.size() && inputs.size() <= limits::kPeersMax);
  if (dtype == DataType::f32) return sum_floats(inputs, scales, out, true);
  weighted_sum(dtype, inputs, scales, out);
  return all_finite(dtype, out);
}

}  // namespace leeway::codec
