#include "text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "standard_output.h"

namespace leeway::tools {

Status write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    print(text);
    return Status();
  }
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file == nullptr || std::fclose(file) == 0;
  if (written && closed) return Status();
  return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", path.c_str(),
                       std::strerror(errno));
}

Status check_writable(const std::string& path) {
  if (path.empty() || path == "-") return Status();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "a"),
                                                             std::fclose);
  if (file) return Status();
  return Status::error(StatusCode::kInvalidArgument, "--json %s: %s", path.c_str(),
                       std::strerror(errno));
}

}  // namespace leeway::tools
