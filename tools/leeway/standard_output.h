// Standard output of the command. Subcommands need not check whether it takes what they print:
// main() does that for all of them.
#pragma once

#include <string>

namespace leeway::tools {

// Prints and flushes, so that each part is seen at once, also through a pipe. What is printed with
// printf() or puts() appears in order with it.
void print(const std::string& text);

// Returns the command's exit code, given the one so far. If something that was printed is lost, the
// function says why on stderr, and turns 0 into kExitFailed. A pipe whose reader has ended (`head`)
// is no error.
int finish_output(int exit_code);

}  // namespace leeway::tools
