#include "text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace leeway::tools {

Status write_text(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file == nullptr || file == stdout || std::fclose(file) == 0;
  if (written && closed) return Status();
  return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", path.c_str(),
                       std::strerror(errno));
}

}  // namespace leeway::tools
