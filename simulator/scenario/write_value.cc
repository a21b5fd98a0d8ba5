#include "scenario/write_value.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <google/protobuf/text_format.h>

#include "base/read_number.h"
#include "scenario/field_limits.h"
#include "scenario/nearest_name.h"
#include "scenario/parse_error.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string quoted(std::string_view text) {
  return '"' + std::string(text.substr(0, 60)) + '"';
}

template <typename T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  return read_number(text, value) ? std::optional(value) : std::nullopt;
}

// Reads a whole number, also in the form 1e6.
std::optional<std::uint64_t> whole_number_of(std::string_view text) {
  if (const auto value = number_of<std::uint64_t>(text)) return value;
  const auto real = number_of<double>(text);
  if (!real || !(*real >= 0 && *real <= 9e15)) return std::nullopt;
  const auto value = static_cast<std::uint64_t>(*real);
  return static_cast<double>(value) == *real ? std::optional(value) : std::nullopt;
}

Status outside_limit(const Slot& slot, double value) {
  return refuse(slot, "is " + number_text(value) + "; allowed is " + limit_text(slot.field));
}

Status write_double(const Slot& slot, std::string_view text) {
  const auto value = number_of<double>(text);
  if (!value) return refuse(slot, "is a number, not " + quoted(text));
  if (!within_limit(slot.field, *value)) return outside_limit(slot, *value);
  if (slot.in_list()) {
    slot.reflection().SetRepeatedDouble(&slot.message, &slot.field, slot.index, *value);
  } else {
    slot.reflection().SetDouble(&slot.message, &slot.field, *value);
  }
  return {};
}

// Writes an integer of 32 or 64 bits. The field's limit keeps 32-bit values in range.
Status write_integer(const Slot& slot, std::string_view text) {
  const auto value = whole_number_of(text);
  if (!value) {
    const auto real = number_of<double>(text);
    if (real && !within_limit(slot.field, *real)) return outside_limit(slot, *real);
    return refuse(slot, "is a whole number, not " + quoted(text));
  }
  const auto real = static_cast<double>(*value);
  if (!within_limit(slot.field, real)) return outside_limit(slot, real);
  const Reflection& reflection = slot.reflection();
  const bool wide = slot.field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  const auto narrow = static_cast<std::uint32_t>(*value);
  Message* const message = &slot.message;
  if (slot.in_list() && wide) {
    reflection.SetRepeatedUInt64(message, &slot.field, slot.index, *value);
  } else if (slot.in_list()) {
    reflection.SetRepeatedUInt32(message, &slot.field, slot.index, narrow);
  } else if (wide) {
    reflection.SetUInt64(message, &slot.field, *value);
  } else {
    reflection.SetUInt32(message, &slot.field, narrow);
  }
  return {};
}

Status write_bool(const Slot& slot, std::string_view text) {
  if (text != "true" && text != "false") {
    return refuse(slot, "is true or false, not " + quoted(text));
  }
  slot.reflection().SetBool(&slot.message, &slot.field, text == "true");
  return {};
}

Status write_enum(const Slot& slot, std::string_view text) {
  const EnumValueDescriptor* const value =
      slot.field.enum_type()->FindValueByName(std::string(text));
  if (value == nullptr) {
    return refuse(
        slot, "cannot be " + quoted(text) + suggestion(text, value_names(*slot.field.enum_type())));
  }
  slot.reflection().SetEnum(&slot.message, &slot.field, value);
  return {};
}

Status write_string(const Slot& slot, std::string_view text) {
  const bool has_quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  std::string value(has_quotes ? text.substr(1, text.size() - 2) : text);
  if (slot.in_list()) {
    slot.reflection().SetRepeatedString(&slot.message, &slot.field, slot.index, std::move(value));
  } else {
    slot.reflection().SetString(&slot.message, &slot.field, std::move(value));
  }
  return {};
}

Status write_message(const Slot& slot, std::string_view text) {
  Message* const target =
      slot.in_list()
          ? slot.reflection().MutableRepeatedMessage(&slot.message, &slot.field, slot.index)
          : slot.reflection().MutableMessage(&slot.message, &slot.field);
  const std::unique_ptr<Message> parsed(target->New());
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(std::string(text), parsed.get())) {
    return refuse(slot, "= " + quoted(text) + ": " + errors.explanation());
  }
  const Status checked = check_limits(*parsed, Places(), slot.path);
  if (checked.ok()) target->CopyFrom(*parsed);
  return checked;
}

void append_default(const Slot& slot) {
  switch (slot.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return slot.reflection().AddDouble(&slot.message, &slot.field, 0.0);
    case FieldDescriptor::CPPTYPE_UINT64:
      return slot.reflection().AddUInt64(&slot.message, &slot.field, 0);
    default:
      return slot.reflection().AddString(&slot.message, &slot.field, {});
  }
}

}  // namespace

Status refuse(const Slot& slot, const std::string& why) {
  return Places().refuse(to_string(slot.path), why);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

Status write_value(const Slot& slot, std::string_view text) {
  switch (slot.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return write_double(slot, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      return write_bool(slot, text);
    case FieldDescriptor::CPPTYPE_ENUM:
      return write_enum(slot, text);
    case FieldDescriptor::CPPTYPE_STRING:
      return write_string(slot, text);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return write_message(slot, text);
    default:
      return write_integer(slot, text);
  }
}

Status write_list(Slot slot, std::string_view text) {
  if (slot.field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return refuse(slot, "is a list of messages: set the fields of one entry, such as " +
                            slot.field.name() + "[0]");
  }
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = trimmed(text.substr(1, text.size() - 2));
  }
  slot.reflection().ClearField(&slot.message, &slot.field);
  for (slot.index = 0; !text.empty(); ++slot.index) {
    const std::size_t comma = std::min(text.find(','), text.size());
    append_default(slot);
    const Status written = write_value(slot, trimmed(text.substr(0, comma)));
    if (!written.ok()) return written;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {};
}

}  // namespace leeway::sim::scenario
