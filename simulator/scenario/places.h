// Records where in its file each value of a scenario was written, for error messages.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <google/protobuf/text_format.h>

#include "leeway/status.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

class Places {
 public:
  // For a scenario that was not read from a file. Messages then name fields without places.
  Places() = default;
  explicit Places(std::string_view file_name);

  // Returns the place of the value at `path`, such as "two_regions.txtpb:7:3: ", with line and
  // column from 1. For a path that the file does not mention, it returns the place of the innermost
  // message around the path, or only the file's name.
  std::string prefix(const FieldPath& path) const;
  std::string prefix(std::string_view path_text) const;

  // Returns kInvalidArgument with place, path, then `why`: "a.txtpb:7:3: link[0].loss.random.p is
  // 1.5; ...".
  Status refuse(std::string_view path_text, const std::string& why) const;

  const std::string& file_name() const { return file_name_; }
  google::protobuf::TextFormat::ParseInfoTree* tree() { return tree_.get(); }

 private:
  std::string file_name_;
  std::shared_ptr<google::protobuf::TextFormat::ParseInfoTree> tree_;
};

// A file's path, cut at its head so that messages have room for the reason.
std::string short_file_name(std::string_view path);

}  // namespace leeway::sim::scenario
