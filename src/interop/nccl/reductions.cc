#include "interop/nccl/reductions.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/element.h"
#include "codec/float8.h"

namespace leeway::nccl {
namespace {

constexpr std::array<DataType, 12> kTypes = {DataType::i8,   DataType::u8,     DataType::i32,
                                             DataType::u32,  DataType::i64,    DataType::u64,
                                             DataType::f16,  DataType::f32,    DataType::f64,
                                             DataType::bf16, DataType::f8e4m3, DataType::f8e5m2};

constexpr std::array<ReduceOp, Reductions::kFirstMade> kBuiltIn = {
    ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg};

template <typename T>
T loaded(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

}  // namespace

std::optional<DataType> type_of(leeway_nccl_enum type) {
  if (type < 0 || type >= static_cast<int>(kTypes.size())) return std::nullopt;
  return kTypes[static_cast<std::size_t>(type)];
}

Scalar scalar_at(const void* memory, DataType type) {
  switch (type) {
    case DataType::f32:
      return double{loaded<float>(memory)};
    case DataType::f64:
      return loaded<double>(memory);
    case DataType::f16:
      return double{codec::float_from_half(loaded<Half>(memory))};
    case DataType::bf16:
      return double{codec::float_from_bfloat16(loaded<BFloat16>(memory))};
    case DataType::i8:
      return std::int64_t{loaded<std::int8_t>(memory)};
    case DataType::i32:
      return loaded<std::int32_t>(memory);
    case DataType::i64:
      return loaded<std::int64_t>(memory);
    case DataType::u8:
    case DataType::boolean:
      return loaded<std::uint8_t>(memory);
    case DataType::u32:
      return loaded<std::uint32_t>(memory);
    case DataType::u64:
      return loaded<std::uint64_t>(memory);
    case DataType::f8e4m3:
      return double{codec::float_from_f8(loaded<F8E4M3>(memory))};
    case DataType::f8e5m2:
      return double{codec::float_from_f8(loaded<F8E5M2>(memory))};
  }
  return 1;
}

leeway_nccl_enum Reductions::make(const void* memory, DataType type, bool later) {
  const std::lock_guard lock(mutex_);
  auto free = std::find_if(made_.begin(), made_.end(), [](const Made& one) { return !one.there; });
  if (free == made_.end()) free = made_.emplace(made_.end());
  *free = {true, type, later ? memory : nullptr, later ? Scalar(1) : scalar_at(memory, type)};
  return kFirstMade + static_cast<leeway_nccl_enum>(free - made_.begin());
}

bool Reductions::destroy(leeway_nccl_enum op) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(op) - kFirstMade;
  if (op < kFirstMade || index >= made_.size() || !made_[index].there) return false;
  made_[index].there = false;
  return true;
}

Status Reductions::resolve(leeway_nccl_enum op, DataType type, CollectiveOptions& options,
                           const void*& later) const {
  if (op >= 0 && op < kFirstMade) {
    options.op = kBuiltIn[static_cast<std::size_t>(op)];
    return Status();
  }
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(op) - kFirstMade;
  if (op < 0 || index >= made_.size() || !made_[index].there) {
    return Status::error(StatusCode::kInvalidArgument,
                         "reduction operation %d unknown to this communicator", op);
  }
  const Made& made = made_[index];
  if (made.type != type) {
    return Status::error(StatusCode::kInvalidArgument,
                         "Data type supplied to user-created ncclRedOp_t does not match type given "
                         "to reduction operation");
  }
  options.op = ReduceOp::premul_sum;
  options.factor = made.factor;
  later = made.memory;
  return Status();
}

}  // namespace leeway::nccl
