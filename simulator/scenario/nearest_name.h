// Finds the valid name that a person most likely meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace leeway::sim::scenario {

// Returns the least number of insertions, deletions, replacements and swaps of neighbours that
// turns `from` into `to`.
int edit_distance(std::string_view from, std::string_view to);

// Returns the candidate with the least edit distance, or the first of several such candidates.
// Returns an empty text if the distance is half of the name's length or more.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// Returns the end of an error message about `name`: `; did you mean "rate_mbps"?`, or a list of
// valid names if none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// Names of the message's fields in the order of the schema.
std::vector<std::string> field_names(const google::protobuf::Descriptor& message);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

}  // namespace leeway::sim::scenario
