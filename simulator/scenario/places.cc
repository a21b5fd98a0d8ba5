#include "scenario/places.h"

#include <algorithm>

#include "scenario.pb.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Limit on the characters of a file's name in a message. A Status has room for 316 characters.
constexpr std::size_t kFileNameMax = 100;

// Returns the place of the value at `step`. All values of a short list such as [1, 2] get the place
// of the first value, because Protobuf records no other.
TextFormat::ParseLocation location(const TextFormat::ParseInfoTree& tree, const FieldStep& step) {
  if (!step.field->is_repeated()) return tree.GetLocation(step.field, -1);
  for (int i = std::max(step.index, 0); i >= 0; --i) {
    const TextFormat::ParseLocation found = tree.GetLocation(step.field, i);
    if (found.line >= 0) return found;
  }
  return {};
}

}  // namespace

std::string short_file_name(std::string_view path) {
  if (path.size() <= kFileNameMax) return std::string(path);
  return "..." + std::string(path.substr(path.size() - kFileNameMax));
}

Places::Places(std::string_view file_name)
    : file_name_(short_file_name(file_name)),
      tree_(std::make_shared<TextFormat::ParseInfoTree>()) {}

std::string Places::prefix(const FieldPath& path) const {
  if (tree_ == nullptr) return {};
  TextFormat::ParseLocation innermost;
  const TextFormat::ParseInfoTree* tree = tree_.get();
  for (const FieldStep& step : path) {
    if (tree == nullptr) break;
    const TextFormat::ParseLocation found = location(*tree, step);
    if (found.line < 0) break;
    innermost = found;
    if (step.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) break;
    tree = tree->GetTreeForNested(step.field,
                                  step.field->is_repeated() ? std::max(step.index, 0) : -1);
  }
  if (innermost.line < 0) return file_name_ + ": ";
  return file_name_ + ":" + std::to_string(innermost.line + 1) + ":" +
         std::to_string(innermost.column + 1) + ": ";
}

std::string Places::prefix(std::string_view path_text) const {
  const Result<FieldPath> path = parse_path(*Scenario::descriptor(), path_text);
  return prefix(path.ok() ? *path : FieldPath{});
}

Status Places::refuse(std::string_view path_text, const std::string& why) const {
  return Status::error(StatusCode::kInvalidArgument, "%s%.*s %s", prefix(path_text).c_str(),
                       static_cast<int>(path_text.size()), path_text.data(), why.c_str());
}

}  // namespace leeway::sim::scenario
