// Checks the rules that the schema itself states, as options `limit` and `needed` of fields in
// proto/scenario.proto.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "leeway/status.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Returns the shortest text that reads back as the same number. Whole numbers get no exponent.
std::string number_text(double value);

// Returns text such as "0 to 1" or "above 0, up to 1000".
std::string limit_text(const google::protobuf::FieldDescriptor& field);

// Returns true if the field has no limit, or if `value` is within its limit. NaN is within no
// limit.
bool within_limit(const google::protobuf::FieldDescriptor& field, double value);

// Returns the first violation in schema order, at any depth. `path` leads to `message`; it is empty
// for a Scenario.
Status check_limits(const google::protobuf::Message& message, const Places& places,
                    FieldPath path = {});

}  // namespace leeway::sim::scenario
