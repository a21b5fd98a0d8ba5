// A tensor of any element type that tests fill with small whole numbers and read back as doubles.
#pragma once

#include <cstring>
#include <vector>

#include "codec/element.h"
#include "codec/float8.h"
#include "leeway/types.h"

namespace leeway::testing {

class TypedTensor {
 public:
  TypedTensor() = default;
  TypedTensor(DataType dtype, std::size_t count) : dtype_(dtype), bytes_(count * size_of(dtype)) {}

  DataType dtype() const { return dtype_; }
  std::size_t count() const { return bytes_.size() / size_of(dtype_); }
  TensorView view() { return {bytes_.data(), count(), dtype_}; }
  TensorView view(std::size_t first, std::size_t elements) {
    return {bytes_.data() + first * size_of(dtype_), elements, dtype_};
  }
  ByteSpan bytes() const { return bytes_; }

  void set(std::size_t i, double value) {
    switch (dtype_) {
      case DataType::f32:
        return put(i, static_cast<float>(value));
      case DataType::f64:
        return put(i, value);
      case DataType::f16:
        return put(i, codec::half_from_float(static_cast<float>(value)));
      case DataType::bf16:
        return put(i, codec::bfloat16_from_float(static_cast<float>(value)));
      case DataType::i8:
        return put(i, static_cast<std::int8_t>(value));
      case DataType::i32:
        return put(i, static_cast<std::int32_t>(value));
      case DataType::i64:
        return put(i, static_cast<std::int64_t>(value));
      case DataType::u8:
        return put(i, static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
      case DataType::u32:
        return put(i, static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
      case DataType::u64:
        return put(i, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
      case DataType::f8e4m3:
        return put(i, codec::f8e4m3_from_float(static_cast<float>(value)));
      case DataType::f8e5m2:
        return put(i, codec::f8e5m2_from_float(static_cast<float>(value)));
      case DataType::boolean:
        return put(i, static_cast<std::uint8_t>(value));
    }
  }

  double get(std::size_t i) const {
    switch (dtype_) {
      case DataType::f32:
        return at<float>(i);
      case DataType::f64:
        return at<double>(i);
      case DataType::f16:
        return codec::float_from_half(at<Half>(i));
      case DataType::bf16:
        return codec::float_from_bfloat16(at<BFloat16>(i));
      case DataType::i8:
        return at<std::int8_t>(i);
      case DataType::i32:
        return at<std::int32_t>(i);
      case DataType::i64:
        return static_cast<double>(at<std::int64_t>(i));
      case DataType::u8:
        return at<std::uint8_t>(i);
      case DataType::u32:
        return at<std::uint32_t>(i);
      case DataType::u64:
        return static_cast<double>(at<std::uint64_t>(i));
      case DataType::f8e4m3:
        return codec::float_from_f8(at<F8E4M3>(i));
      case DataType::f8e5m2:
        return codec::float_from_f8(at<F8E5M2>(i));
      case DataType::boolean:
        return at<std::uint8_t>(i);
    }
    return 0.0;
  }

  friend bool operator==(const TypedTensor&, const TypedTensor&) = default;

 private:
  template <typename T>
  void put(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T at(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }

  DataType dtype_ = DataType::f32;
  std::vector<std::byte> bytes_;
};

}  // namespace leeway::testing
