// Typed writing of one field of one message by reflection: the last step of set_field().
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "leeway/status.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// One value of one message. Index kNoIndex: the field is no list, or all of the list is meant.
struct Slot {
  google::protobuf::Message& message;
  const google::protobuf::FieldDescriptor& field;
  int index;
  const FieldPath& path;  // for error messages

  const google::protobuf::Reflection& reflection() const { return *message.GetReflection(); }
  bool in_list() const { return field.is_repeated(); }
};

// Returns kInvalidArgument with the slot's path, then `why`.
Status refuse(const Slot& slot, const std::string& why);

// Replaces one value, which exists if it is in a list. Refuses what the field's type or limit does
// not allow.
Status write_value(const Slot& slot, std::string_view text);

// Replaces all of a list: "1, 2, 3", "[1, 2]", "[]". An error leaves the values before it.
Status write_list(Slot slot, std::string_view text);

// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace leeway::sim::scenario
