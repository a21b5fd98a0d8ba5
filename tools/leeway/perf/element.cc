#include "perf/element.h"

#include <cstdint>
#include <cstring>

#include "codec/element.h"
#include "codec/float8.h"

namespace leeway::tools::perf {
namespace {

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
      return codec::float_from_half(read<Half>(tensor, index));
    case DataType::bf16:
      return codec::float_from_bfloat16(read<BFloat16>(tensor, index));
    case DataType::i8:
      return read<std::int8_t>(tensor, index);
    case DataType::i32:
      return read<std::int32_t>(tensor, index);
    case DataType::i64:
      return static_cast<double>(read<std::int64_t>(tensor, index));
    case DataType::u8:
    case DataType::boolean:
      return read<std::uint8_t>(tensor, index);
    case DataType::u32:
      return read<std::uint32_t>(tensor, index);
    case DataType::u64:
      return static_cast<double>(read<std::uint64_t>(tensor, index));
    case DataType::f8e4m3:
      return codec::float_from_f8(read<F8E4M3>(tensor, index));
    case DataType::f8e5m2:
      return codec::float_from_f8(read<F8E5M2>(tensor, index));
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
      return write(tensor, index, codec::half_from_float(static_cast<float>(value)));
    case DataType::bf16:
      return write(tensor, index, codec::bfloat16_from_float(static_cast<float>(value)));
    case DataType::i8:
      return write(tensor, index, static_cast<std::int8_t>(value));
    case DataType::i32:
      return write(tensor, index, static_cast<std::int32_t>(value));
    case DataType::i64:
      return write(tensor, index, static_cast<std::int64_t>(value));
    case DataType::u8:
    case DataType::boolean:
      return write(tensor, index, static_cast<std::uint8_t>(value));
    case DataType::u32:
      return write(tensor, index, static_cast<std::uint32_t>(value));
    case DataType::u64:
      return write(tensor, index, static_cast<std::uint64_t>(value));
    case DataType::f8e4m3:
      return write(tensor, index, codec::f8e4m3_from_float(static_cast<float>(value)));
    case DataType::f8e5m2:
      return write(tensor, index, codec::f8e5m2_from_float(static_cast<float>(value)));
  }
}

double integer_max(DataType type) {
  switch (type) {
    case DataType::boolean:
      return 1;
    case DataType::f8e5m2:
      return 8;
    case DataType::f8e4m3:
      return 16;
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
    case DataType::u32:
      return 4294967295;
    case DataType::f64:
    case DataType::i64:
    case DataType::u64:
      return 9007199254740992;  // 2^53, the last integer a double steps to by one
  }
  return 0;
}

}  // namespace leeway::tools::perf
