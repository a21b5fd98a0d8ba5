// Writes the files of subcommands that programs read.
#pragma once

#include <string>

#include "leeway/status.h"

namespace leeway::tools {

// Replaces the file's content; "-" is standard output.
Status write_text(const std::string& path, const std::string& text);

}  // namespace leeway::tools
