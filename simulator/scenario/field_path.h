// The place of a value in a scenario, as people write it: link[0].loss.gilbert_elliott.p
//
// Sweeps, --set and all error messages use such paths. Parsing a path does not check that link[7]
// exists, because that depends on the scenario. set_field() does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "leeway/status.h"

namespace leeway::sim::scenario {

inline constexpr int kNoIndex = -1;     // a field that is no list, or a whole list at a path's end
inline constexpr int kEveryIndex = -2;  // link[*]

struct FieldStep {
  const google::protobuf::FieldDescriptor* field = nullptr;
  int index = kNoIndex;

  friend bool operator==(const FieldStep&, const FieldStep&) = default;
};
using FieldPath = std::vector<FieldStep>;

// Refuses an unknown field (the error gives the nearest name), an index on a field that is no list,
// a list without an index before the end of the path, and a step into a field that is no message.
Result<FieldPath> parse_path(const google::protobuf::Descriptor& root, std::string_view text);

std::string to_string(const FieldPath& path);

}  // namespace leeway::sim::scenario
