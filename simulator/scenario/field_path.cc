#include "scenario/field_path.h"

#include <algorithm>

#include "base/read_number.h"
#include "scenario/nearest_name.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Limit on the steps of a path. No path in the schema has more.
constexpr std::size_t kStepsMax = 16;

Status refuse(std::string_view path, const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument, "%.*s: %s", static_cast<int>(path.size()),
                       path.data(), why.c_str());
}

// Reads an index, "[3]" or "[*]". Returns false for any other text.
bool parse_index(std::string_view text, int& out) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside == "*") {
    out = kEveryIndex;
    return true;
  }
  return read_number(inside, out) && out >= 0;
}

// Parses one step, "name" or "name[index]", inside `message`.
Status parse_step(const Descriptor& message, std::string_view path, std::string_view text,
                  FieldStep& out) {
  const std::size_t bracket = text.find('[');
  const std::string name(text.substr(0, bracket));
  out.field = message.FindFieldByName(name);
  if (out.field == nullptr) {
    return refuse(path, message.name() + " has no field \"" + name + "\"" +
                            suggestion(name, field_names(message)));
  }
  if (bracket == std::string_view::npos) return {};
  if (!out.field->is_repeated()) return refuse(path, name + " is not a list, so it has no index");
  if (parse_index(text.substr(bracket), out.index)) return {};
  return refuse(path, "an index is written " + name + "[0], all entries " + name + "[*]");
}

Status check_inner(std::string_view path, const FieldStep& step) {
  const std::string& name = step.field->name();
  if (step.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return refuse(path, name + " is a value, so it has no fields");
  }
  if (!step.field->is_repeated() || step.index != kNoIndex) return {};
  return refuse(path, name + " is a list: write " + name + "[0] for its first entry or " + name +
                          "[*] for all");
}

}  // namespace

Result<FieldPath> parse_path(const Descriptor& root, std::string_view text) {
  if (text.size() > 200) {
    return Status::error(StatusCode::kInvalidArgument, "a field's path of %zu characters",
                         text.size());
  }
  FieldPath path;
  const Descriptor* message = &root;
  std::size_t begin = 0;
  while (path.size() < kStepsMax) {
    const std::size_t dot = std::min(text.find('.', begin), text.size());
    FieldStep& step = path.emplace_back();
    const Status parsed = parse_step(*message, text, text.substr(begin, dot - begin), step);
    if (!parsed.ok()) return parsed;
    if (dot == text.size()) return path;
    const Status inner = check_inner(text, step);
    if (!inner.ok()) return inner;
    message = step.field->message_type();
    begin = dot + 1;
  }
  return refuse(text, "no field lies so deep");
}

std::string to_string(const FieldPath& path) {
  std::string text;
  for (const FieldStep& step : path) {
    if (!text.empty()) text += '.';
    text += step.field->name();
    if (step.index == kEveryIndex) text += "[*]";
    if (step.index >= 0) text += '[' + std::to_string(step.index) + ']';
  }
  return text;
}

}  // namespace leeway::sim::scenario
