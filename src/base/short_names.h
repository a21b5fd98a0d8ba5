// Short names of element types. Command lines and policies accept them as well as the names that
// to_string() gives.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "leeway/types.h"

namespace leeway {

// Short names in the order of DataType's enumerators.
inline constexpr std::array<std::string_view, kDataTypeCount> kShortTypeNames = {
    "f32", "f64", "f16", "bf16",   "i8",     "i32", "i64",
    "u8",  "u32", "u64", "f8e4m3", "f8e5m2", "bool"};

constexpr std::string_view short_name(DataType type) {
  return kShortTypeNames[static_cast<std::size_t>(type)];
}

constexpr std::optional<DataType> type_of_short_name(std::string_view name) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (name == short_name(type)) return type;
  }
  return std::nullopt;
}

}  // namespace leeway
