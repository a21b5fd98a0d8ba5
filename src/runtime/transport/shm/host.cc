#include "transport/shm/host.h"

#include <unistd.h>

#include <fstream>

namespace leeway::transport {
namespace {

// Returns the value of a hexadecimal digit, or -1 if the character is none.
int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Result<Host> this_host(const char* boot_id_file) {
  std::string text;
  std::getline(std::ifstream(boot_id_file), text);
  Host host;
  host.user = ::geteuid();
  std::size_t digits = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0 || digits == 2 * host.boot.size()) continue;
    std::byte& byte = host.boot[digits / 2];
    byte = byte << 4 | static_cast<std::byte>(digit);
    ++digits;
  }
  if (digits == 2 * host.boot.size()) return host;
  return Status::error(StatusCode::kUnsupported, "%s does not say which kernel runs", boot_id_file);
}

}  // namespace leeway::transport
