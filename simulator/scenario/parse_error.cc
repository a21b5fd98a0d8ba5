#include "scenario/parse_error.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "scenario.pb.h"
#include "scenario/nearest_name.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

// Returns the texts between quotation marks. Two of Protobuf's error sentences are recognised by
// their wording (unchanged since 2008), to take names from them. If the wording changes, golden
// tests fail, but users lose only the suggestion.
std::vector<std::string> quotations(std::string_view sentence) {
  std::vector<std::string> found;
  std::size_t open = sentence.find('"');
  while (open != std::string_view::npos) {
    const std::size_t close = sentence.find('"', open + 1);
    if (close == std::string_view::npos) break;
    found.emplace_back(sentence.substr(open + 1, close - open - 1));
    open = sentence.find('"', close + 1);
  }
  return found;
}

// Collects the values that a field of this name may have, from all messages that have such a field.
// Protobuf's error names the field, but not its message.
void collect_values(const Descriptor& message, std::string_view field_name,
                    std::vector<std::string>& out) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.name() != field_name || field.enum_type() == nullptr) continue;
    for (std::string& name : value_names(*field.enum_type())) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    }
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    collect_values(*message.nested_type(i), field_name, out);
  }
}

std::string unknown_value(const std::string& value, const std::string& field_name) {
  std::vector<std::string> values;
  const google::protobuf::FileDescriptor& file = *Scenario::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) {
    collect_values(*file.message_type(i), field_name, values);
  }
  return field_name + " cannot be \"" + value + "\"" + suggestion(value, values);
}

std::string unknown_field(const std::string& type_name, const std::string& field_name) {
  const Descriptor* const type = DescriptorPool::generated_pool()->FindMessageTypeByName(type_name);
  if (type == nullptr) return "\"" + type_name + "\" has no field \"" + field_name + "\"";
  return type->name() + " has no field \"" + field_name + "\"" +
         suggestion(field_name, field_names(*type));
}

bool starts_with(const std::string& text, std::string_view head) {
  return text.rfind(head, 0) == 0;
}

// An error in our words, and the unknown name that it is about. `name` is empty if the text is
// Protobuf's own.
struct Translation {
  std::string text;
  std::string name;
};

Translation translated(const std::string& message) {
  const std::vector<std::string> names = quotations(message);
  if (names.size() != 2) return {message, {}};
  if (starts_with(message, "Message type \"")) {
    return {unknown_field(names[0], names[1]), names[1]};
  }
  if (starts_with(message, "Unknown enumeration value")) {
    return {unknown_value(names[0], names[1]), names[0]};
  }
  return {message, {}};
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool stands_at(const std::string& text, std::size_t offset, const std::string& name) {
  const std::size_t end = offset + name.size();
  return text.compare(offset, name.size(), name) == 0 &&
         (offset == 0 || !is_word(text[offset - 1])) && (end == text.size() || !is_word(text[end]));
}

void advance(TextPlace& place, char passed) {
  if (passed == '\n') {
    place = {place.line + 1, 0};
  } else {
    place.column += passed == '\t' ? 8 - place.column % 8 : 1;
  }
}

}  // namespace

std::string explain(const std::string& protobuf_message) {
  std::string text = translated(protobuf_message).text;
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

TextPlace FirstError::place(const std::string& text) const {
  const std::string name = translated(message_).name;
  TextPlace found = reported_;
  if (name.empty()) return found;
  TextPlace here;
  for (std::size_t offset = 0; offset < text.size() && here < reported_; ++offset) {
    if (stands_at(text, offset, name)) found = here;
    advance(here, text[offset]);
  }
  return found;
}

void FirstError::AddError(int line, int column, const std::string& message) {
  if (any_) return;
  any_ = true;
  reported_ = {std::max(line, 0), std::max(column, 0)};
  message_ = message;
}

}  // namespace leeway::sim::scenario
