#include "scenario/field_limits.h"

#include <charconv>
#include <cmath>

#include "scenario.pb.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Reads a number as a double. 64-bit integers lose low bits, but only far above every limit.
double number_at(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return list ? reflection.GetRepeatedUInt32(message, &field, index)
                  : reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(list ? reflection.GetRepeatedUInt64(message, &field, index)
                                      : reflection.GetUInt64(message, &field));
    default:
      return list ? reflection.GetRepeatedDouble(message, &field, index)
                  : reflection.GetDouble(message, &field);
  }
}

Status check_number(const Message& message, const FieldDescriptor& field, int index,
                    const Places& places, const FieldPath& path) {
  const double value = number_at(message, field, index);
  if (within_limit(field, value)) return {};
  return places.refuse(to_string(path),
                       "is " + number_text(value) + "; allowed is " + limit_text(field));
}

const Message& message_at(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, index)
                             : reflection.GetMessage(message, &field);
}

Status check_field(const Message& message, const FieldDescriptor& field, const Places& places,
                   FieldPath& path) {
  const int count = field.is_repeated() ? message.GetReflection()->FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    path.push_back({&field, field.is_repeated() ? i : kNoIndex});
    Status checked;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      checked = check_limits(message_at(message, field, i), places, path);
    } else if (field.options().HasExtension(limit)) {
      checked = check_number(message, field, i, places, path);
    }
    if (!checked.ok()) return checked;
    path.pop_back();
  }
  return {};
}

bool is_given(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

}  // namespace

std::string number_text(double value) {
  char text[40];
  const bool whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const auto format = whole ? std::chars_format::fixed : std::chars_format::general;
  const auto end = std::to_chars(text, text + sizeof text, value, format).ptr;
  return {text, end};
}

std::string count_text(std::uint64_t value) {
  return std::to_string(value);
}

std::string limit_text(const FieldDescriptor& field) {
  const Limit& range = field.options().GetExtension(limit);
  const std::string from = number_text(range.min()), to = number_text(range.max());
  return range.above() ? "above " + from + ", up to " + to : from + " to " + to;
}

bool within_limit(const FieldDescriptor& field, double value) {
  if (!field.options().HasExtension(limit)) return true;
  const Limit& range = field.options().GetExtension(limit);
  const bool high_enough = range.above() ? value > range.min() : value >= range.min();
  return high_enough && value <= range.max();
}

Status check_limits(const Message& message, const Places& places, FieldPath path) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (is_given(message, field)) {
      const Status checked = check_field(message, field, places, path);
      if (!checked.ok()) return checked;
    } else if (field.options().GetExtension(needed)) {
      path.push_back({&field, kNoIndex});
      return places.refuse(to_string(path), "is missing; " + type.name() + " needs it");
    }
  }
  return {};
}

}  // namespace leeway::sim::scenario
