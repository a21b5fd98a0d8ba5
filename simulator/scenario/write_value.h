// Writes one field of one message by reflection. This is the last step of set_field().
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "leeway/status.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// One value of one message. With index kNoIndex the field is no list, or the whole list is meant.
struct Slot {
  google::protobuf::Message& message;
  const google::protobuf::FieldDescriptor& field;
  int index;
  const FieldPath& path;  // for error messages

  const google::protobuf::Reflection& reflection() const { return *message.GetReflection(); }
  bool in_list() const { return field.is_repeated(); }
};

// Returns kInvalidArgument with the slot's path and then `why`.
Status refuse(const Slot& slot, const std::string& why);

// Replaces one value; a list entry must exist. Refuses a value that the field's type or limit does
// not allow.
Status write_value(const Slot& slot, std::string_view text);

// Replaces a whole list: "1, 2, 3", "[1, 2]", "[]". On an error the old values are gone, so
// set_field() works on a copy.
Status write_list(Slot slot, std::string_view text);

// Returns the text without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace leeway::sim::scenario
