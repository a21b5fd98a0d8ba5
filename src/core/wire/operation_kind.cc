#include "wire/operation_kind.h"

#include <array>

namespace leeway::wire {

const char* to_string(OperationKind kind) {
  constexpr std::array<const char*, kOperationKinds> kNames = {
      "all_reduce", "reduce_scatter",   "all_gather",           "broadcast", "reduce",
      "gather",     "scatter",          "all_to_all",           "send",      "recv",
      "barrier",    "reduce_gradients", "broadcast_parameters", "split",     "exchange"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace leeway::wire
