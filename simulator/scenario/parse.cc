#include "scenario/parse.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <google/protobuf/text_format.h>

#include "scenario/parse_error.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

// Reads at most bytes_max + 1 bytes, so that the caller sees if there are too many.
bool read_some(const std::string& path, std::size_t bytes_max, std::string& out) {
  const File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return false;
  out.resize(bytes_max + 1);
  out.resize(std::fread(out.data(), 1, out.size(), file.get()));
  return std::ferror(file.get()) == 0;
}

struct Folder {
  std::filesystem::path path;
  const Places& places;
};

Status resolve_file(Message& message, const FieldDescriptor& field, const Folder& folder,
                    const FieldPath& path) {
  const Reflection& reflection = *message.GetReflection();
  const std::string name = (folder.path / reflection.GetString(message, &field)).string();
  std::string first_byte;
  if (!read_some(name, 1, first_byte)) {
    return folder.places.refuse(
        to_string(path), "cannot be read: " + short_file_name(name) + ": " + error_text(errno));
  }
  reflection.SetString(&message, &field, name);
  return {};
}

Status resolve_message(Message& message, const Folder& folder, FieldPath& path) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection.ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!nested && !field->options().GetExtension(scenario::file)) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      path.push_back({field, field->is_repeated() ? i : kNoIndex});
      const Status resolved =
          !nested ? resolve_file(message, *field, folder, path)
          : field->is_repeated()
              ? resolve_message(*reflection.MutableRepeatedMessage(&message, field, i), folder,
                                path)
              : resolve_message(*reflection.MutableMessage(&message, field), folder, path);
      if (!resolved.ok()) return resolved;
      path.pop_back();
    }
  }
  return {};
}

Result<Scenario> parse_into(const std::string& text, Places& places) {
  const char* const name = places.file_name().c_str();
  if (text.size() > kScenarioBytesMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: more than %zu bytes; long tables belong into files of their own",
                         name, kScenarioBytesMax);
  }
  Scenario scenario;
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(places.tree());
  if (!parser.ParseFromString(text, &scenario) || errors.any()) {
    const TextPlace place = errors.place(text);
    return Status::error(StatusCode::kInvalidArgument, "%s:%d:%d: %s", name, place.line + 1,
                         place.column + 1, errors.explanation().c_str());
  }
  const Status valid = validate(scenario, places);
  if (!valid.ok()) return valid;
  return scenario;
}

}  // namespace

Result<Scenario> parse_text(std::string_view text, std::string_view file_name) {
  Places places(file_name);
  return parse_into(std::string(text), places);
}

Result<Scenario> read_file(const std::string& path) {
  std::string text;
  if (!read_some(path, kScenarioBytesMax, text)) {
    return Status::error(StatusCode::kUnavailable, "%s: cannot be read: %s",
                         short_file_name(path).c_str(), error_text(errno).c_str());
  }
  Places places(path);
  Result<Scenario> parsed = parse_into(text, places);
  if (!parsed.ok()) return parsed;
  const std::filesystem::path location(path);
  if (parsed->name().empty()) parsed->set_name(location.stem().string());
  const Status resolved = resolve_files(*parsed, location.parent_path().string(), places);
  if (!resolved.ok()) return resolved;
  return parsed;
}

Status resolve_files(Scenario& scenario, const std::string& folder, const Places& places) {
  FieldPath path;
  return resolve_message(scenario, Folder{folder, places}, path);
}

}  // namespace leeway::sim::scenario
