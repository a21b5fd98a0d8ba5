// Finds the valid name that a person most likely meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace leeway::sim::scenario {

// Returns how many insertions, deletions, replacements and swaps of neighbours turn one text into
// the other.
int edit_distance(std::string_view from, std::string_view to);

// Returns the nearest candidate, the first one if several are. Returns an empty text if even that
// differs in more than half of the name's length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// Returns the end of an error message about `name`: `; did you mean "rate_mbps"?`, or all valid
// names if none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// Names of the message's fields in the order of the schema.
std::vector<std::string> field_names(const google::protobuf::Descriptor& message);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

}  // namespace leeway::sim::scenario
