// Vocabulary shared by every public header: ranks, spans, element types, tensor views.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "leeway/export.h"

namespace leeway {
inline namespace v0 {

// Index of a process in a communicator, 0 .. size-1.
using Rank = std::uint16_t;
// No rank at all.
inline constexpr Rank kNoRank = 0xFFFF;
// As the peer of a receive: whichever rank sends next. The report names that rank.
inline constexpr Rank kAnyRank = 0xFFFD;
// As a destination: every other rank at once, if the transport and the network have multicast.
inline constexpr Rank kEveryRank = 0xFFFE;

// A length of time. A std::chrono duration converts if it is integral and no finer than this.
using Duration = std::chrono::nanoseconds;
// Memory to read, never owned.
using ByteSpan = std::span<const std::byte>;
// Memory to read and write, never owned.
using MutableByteSpan = std::span<std::byte>;

// The type of a tensor's elements.
enum class DataType : std::uint8_t {
  f32 = 0,  // float
  f64,      // double
  f16,      // Half
  bf16,     // BFloat16
  i8,       // std::int8_t
  i32,      // std::int32_t
  i64,      // std::int64_t
  u8,       // std::uint8_t
  u32,      // std::uint32_t
  u64,      // std::uint64_t
  f8e4m3,   // F8E4M3
  f8e5m2,   // F8E5M2
  boolean,  // bool: a byte; any but 0 is true, results are 0 and 1
};
// Number of element types.
inline constexpr int kDataTypeCount = 13;

// Storage of one IEEE binary16 value. Only the bits: arithmetic happens in float32.
struct Half {
  std::uint16_t bits;  // sign, 5 of exponent, 10 of significand
};
// Storage of one bfloat16 value: the upper half of a float32.
struct BFloat16 {
  std::uint16_t bits;  // sign, 8 of exponent, 7 of significand
};
// Storage of one FP8 value of OCP OFP8 1.0. The largest finite value is 448, and there is no
// infinity. Arithmetic happens in float32 and saturates.
struct F8E4M3 {
  std::uint8_t bits;  // sign, 4 of exponent, 3 of significand
};
// Storage of one FP8 value like F8E4M3, but with infinities and a largest finite value of 57344.
struct F8E5M2 {
  std::uint8_t bits;  // sign, 5 of exponent, 2 of significand
};

// Bytes of one element of this type.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::f64:
    case DataType::i64:
    case DataType::u64:
      return 8;
    case DataType::f32:
    case DataType::i32:
    case DataType::u32:
      return 4;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::i8:
    case DataType::u8:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
    case DataType::boolean:
      return 1;
  }
  return 0;
}
// Returns false for integers and booleans, which no lossy delivery class takes.
constexpr bool is_floating(DataType type) {
  return type == DataType::f32 || type == DataType::f64 || type == DataType::f16 ||
         type == DataType::bf16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
}
// Returns the name as nccl-tests spells it: "float", "double", "half", "bfloat16", "int8", "int32",
// "int64", "uint8", "uint32", "uint64", "f8e4m3", "f8e5m2"; and "bool".
LEEWAY_EXPORT std::string_view to_string(DataType type);

// NOLINTBEGIN(readability-identifier-naming): as the standard library's traits
// The element type of spans of T, in `value`: DataTypeOf<float>::value is DataType::f32. Other
// types do not compile.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::f32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::f64;
};
template <>
struct DataTypeOf<Half> {
  static constexpr DataType value = DataType::f16;
};
template <>
struct DataTypeOf<BFloat16> {
  static constexpr DataType value = DataType::bf16;
};
template <>
struct DataTypeOf<std::int8_t> {
  static constexpr DataType value = DataType::i8;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::i32;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::i64;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::u8;
};
template <>
struct DataTypeOf<std::uint32_t> {
  static constexpr DataType value = DataType::u32;
};
template <>
struct DataTypeOf<std::uint64_t> {
  static constexpr DataType value = DataType::u64;
};
template <>
struct DataTypeOf<F8E4M3> {
  static constexpr DataType value = DataType::f8e4m3;
};
template <>
struct DataTypeOf<F8E5M2> {
  static constexpr DataType value = DataType::f8e5m2;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::boolean;
};
// NOLINTEND(readability-identifier-naming)

// A read-only view of `count` contiguous elements of one type. Never owns. A span of a supported
// element type converts implicitly, so calls read `comm.all_reduce(std::span(gradient), options)`.
//
// There is no default view, so empty braces in a call always mean default options. A view of no
// elements is {nullptr, 0, type}.
struct ConstTensorView {
  const void* data;   // the first element, aligned for its type (not checked)
  std::size_t count;  // elements, not bytes
  DataType dtype;     // type of each element

  // A view of `count_in` elements of a type known at run time only.
  ConstTensorView(const void* data_in, std::size_t count_in, DataType dtype_in)
      : data(data_in), count(count_in), dtype(dtype_in) {}
  // A view of a span of a supported element type.
  template <typename T, std::size_t N>
  // NOLINTNEXTLINE(google-explicit-constructor)
  ConstTensorView(std::span<T, N> span)
      : data(span.data()), count(span.size()), dtype(DataTypeOf<std::remove_const_t<T>>::value) {}

  // Total size of the elements.
  std::size_t bytes() const { return count * size_of(dtype); }
};

// A writable view, otherwise like ConstTensorView. Converts to a read-only view.
struct TensorView {
  void* data;         // the first element, aligned for its type (not checked)
  std::size_t count;  // elements, not bytes
  DataType dtype;     // type of each element

  // A view of `count_in` elements of a type known at run time only.
  TensorView(void* data_in, std::size_t count_in, DataType dtype_in)
      : data(data_in), count(count_in), dtype(dtype_in) {}
  // A view of a span of a supported element type.
  template <typename T, std::size_t N>
  // NOLINTNEXTLINE(google-explicit-constructor)
  TensorView(std::span<T, N> span)
      : data(span.data()), count(span.size()), dtype(DataTypeOf<T>::value) {}

  // The same memory, read-only.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator ConstTensorView() const { return {data, count, dtype}; }
  // Total size of the elements.
  std::size_t bytes() const { return count * size_of(dtype); }
};

}  // namespace v0
}  // namespace leeway
