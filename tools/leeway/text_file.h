// Files of results that subcommands write for programs.
#pragma once

#include <string>

#include "leeway/status.h"

namespace leeway::tools {

// Replaces the file's content; "-" is standard output.
Status write_text(const std::string& path, const std::string& text);

// Checks that the path of --json can be written to, so that a long run does not end at a folder
// that does not exist. Leaves the content of an existing file alone. An empty path is good.
Status check_writable(const std::string& path);

}  // namespace leeway::tools
