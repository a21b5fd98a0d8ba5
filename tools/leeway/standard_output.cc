#include "standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "exit_code.h"

namespace leeway::tools {
namespace {

// The error of the first write that failed. stdout remembers only that one failed: the C library
// drops what it could not write, so a later fflush() succeeds.
int first_error = 0;

void note_error() {
  if (first_error == 0) first_error = errno;
}

}  // namespace

void print(const std::string& text) {
  const bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!taken || std::fflush(stdout) != 0) note_error();
}

int finish_output(int exit_code) {
  if (std::fflush(stdout) != 0) note_error();
  if (first_error == 0 && std::ferror(stdout) != 0) first_error = EIO;  // the reason is not known
  if (first_error == 0 || first_error == EPIPE) return exit_code;
  std::fprintf(stderr, "error: standard output: %s\n", std::strerror(first_error));
  return exit_code == 0 ? kExitFailed : exit_code;
}

}  // namespace leeway::tools
