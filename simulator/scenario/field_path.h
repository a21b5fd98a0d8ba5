// The place of a value in a scenario, as people write it: link[0].loss.gilbert_elliott.p
//
// Used by sweeps, --set and every error message. A path names fields only. Whether link[7] exists
// depends on the scenario, so set_field() checks that.
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

// Refuses a name that the message does not have (the error gives the nearest one), an index of a
// field that is no list, a list in the middle of a path without an index, and a field inside a
// field that is no message.
Result<FieldPath> parse_path(const google::protobuf::Descriptor& root, std::string_view text);

std::string to_string(const FieldPath& path);

}  // namespace leeway::sim::scenario
