// Files of results that subcommands write for programs.
#pragma once

#include <string>

#include "leeway/status.h"

namespace leeway::tools {

// Writes the whole file, whose old content is lost. The path "-" is standard output. Its errors are
// reported by finish_output().
Status write_text(const std::string& path, const std::string& text);

// Checks that the path of --json is writable, so that a long run does not fail at its end. Does not
// change an existing file. An empty path is good.
Status check_writable(const std::string& path);

}  // namespace leeway::tools
