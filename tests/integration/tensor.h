// Tensors of small whole numbers. All element types hold these numbers exactly, and sums are not
// rounded, so a result is wrong if any bit differs.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/element.h"
#include "codec/float8.h"
#include "leeway/types.h"

namespace leeway::integration {

class Tensor {
 public:
  Tensor(DataType type, std::size_t count)
      : type_(type), count_(count), bytes_(count * size_of(type)) {}

  // `value_of(i)` must return a whole number from 0 to 127. Up to 8 it is exact in every type but
  // boolean. Larger numbers are results of reductions. FP8 rounds them once, as reductions do, and
  // in other types they are exact.
  template <typename ValueOf>
  Tensor(DataType type, std::size_t count, ValueOf&& value_of) : Tensor(type, count) {
    for (std::size_t i = 0; i < count; ++i) set(i, static_cast<int>(value_of(i)));
  }

  TensorView view() { return {bytes_.data(), count_, type_}; }

  DataType type() const { return type_; }
  std::size_t count() const { return count_; }

  // Returns the number of elements that differ in any bit. Both tensors must have one type and
  // size.
  std::uint64_t wrong(const Tensor& expected) const {
    std::uint64_t differing = 0;
    const std::size_t element = size_of(type_);
    for (std::size_t at = 0; at < bytes_.size(); at += element) {
      differing += std::memcmp(&bytes_[at], &expected.bytes_[at], element) != 0;
    }
    return differing;
  }

  // Returns the number of elements that differ by more than the share `fraction` from the expected
  // ones. For estimates of floating types.
  std::uint64_t far(const Tensor& expected, double fraction) const {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const double aim = expected.floating(i);
      found += !(std::abs(floating(i) - aim) <= fraction * std::abs(aim));  // NaN is far
    }
    return found;
  }

 private:
  double floating(std::size_t i) const {
    if (type_ == DataType::f32) return load<float>(i);
    if (type_ == DataType::f64) return load<double>(i);
    if (type_ == DataType::f16) return codec::float_from_half(load<Half>(i));
    return codec::float_from_bfloat16(load<BFloat16>(i));
  }

  void set(std::size_t i, int value) {
    switch (type_) {
      case DataType::f32:
        return store(i, static_cast<float>(value));
      case DataType::f64:
        return store(i, static_cast<double>(value));
      case DataType::f16:
        return store(i, codec::half_from_float(static_cast<float>(value)));
      case DataType::bf16:
        return store(i, codec::bfloat16_from_float(static_cast<float>(value)));
      case DataType::i8:
        return store(i, static_cast<std::int8_t>(value));
      case DataType::i32:
        return store(i, static_cast<std::int32_t>(value));
      case DataType::i64:
        return store(i, static_cast<std::int64_t>(value));
      case DataType::u8:
        return store(i, static_cast<std::uint8_t>(value));
      case DataType::u32:
        return store(i, static_cast<std::uint32_t>(value));
      case DataType::u64:
        return store(i, static_cast<std::uint64_t>(value));
      case DataType::f8e4m3:
        return store(i, codec::f8e4m3_from_float(static_cast<float>(value)));
      case DataType::f8e5m2:
        return store(i, codec::f8e5m2_from_float(static_cast<float>(value)));
      case DataType::boolean:
        return store(i, static_cast<std::uint8_t>(value != 0));
    }
  }

  template <typename T>
  void store(std::size_t i, T value) {
    std::memcpy(&bytes_[i * sizeof(T)], &value, sizeof(T));
  }

  template <typename T>
  T load(std::size_t i) const {
    T value;
    std::memcpy(&value, &bytes_[i * sizeof(T)], sizeof(T));
    return value;
  }

  DataType type_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

// Returns element i of this rank: 0 .. 7, different for different ranks, positions and salts.
inline int contribution(int rank, std::size_t i, std::uint32_t salt) {
  const std::uint64_t mixed =
      (i * 4 + static_cast<std::uint64_t>(rank) + salt * 7919ull) * 0x9E3779B97F4A7C15ull;
  return static_cast<int>(mixed >> 61);
}

}  // namespace leeway::integration
