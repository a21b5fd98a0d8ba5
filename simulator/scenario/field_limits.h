// The checks that the schema itself states: `limit` and `needed` of proto/scenario.proto.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "leeway/status.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Shortest text that reads back as the same number; whole numbers without an exponent.
std::string number_text(double value);

// "0 to 1", "above 0, up to 1000".
std::string limit_text(const google::protobuf::FieldDescriptor& field);

// NaN is within no limit. Fields without a limit allow everything.
bool within_limit(const google::protobuf::FieldDescriptor& field, double value);

// Returns the first violation in schema order, at any depth. `path` leads to `message`; it is empty
// for a Scenario.
Status check_limits(const google::protobuf::Message& message, const Places& places,
                    FieldPath path = {});

}  // namespace leeway::sim::scenario
