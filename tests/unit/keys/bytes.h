// Helpers for bytes in the tests of keys.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/types.h"
#include "support/secret_line.h"

namespace leeway::keys {

inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

inline std::vector<std::byte> copy_of(ByteSpan bytes) {
  return {bytes.begin(), bytes.end()};
}

inline std::string line_of(char letter) {
  return secret_digits(letter) + "\n";
}

}  // namespace leeway::keys
