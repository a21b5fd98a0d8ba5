// The valid name a person most likely meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace leeway::sim::scenario {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn one text into the
// other.
int edit_distance(std::string_view from, std::string_view to);

// Returns the candidate at the least distance, the earlier one of equals. Returns no text if none
// is nearer than half of the name's length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// The end of an error message about `name`: `; did you mean "rate_mbps"?`, or the valid names where
// none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// In the order of the schema.
std::vector<std::string> field_names(const google::protobuf::Descriptor& message);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

}  // namespace leeway::sim::scenario
