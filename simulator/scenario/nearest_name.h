// Finds the valid name that a person most likely meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace leeway::sim::scenario {

// The least number of insertions, deletions, replacements and swaps of neighbours that turn one
// text into the other.
int edit_distance(std::string_view from, std::string_view to);

// Returns the candidate at the least distance, the first one of several. Returns no text if the
// distance is more than half of the name's length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// The end of an error message about `name`: `; did you mean "rate_mbps"?`, or the valid names where
// none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// Names of the message's fields in the order of the schema.
std::vector<std::string> field_names(const google::protobuf::Descriptor& message);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

}  // namespace leeway::sim::scenario
