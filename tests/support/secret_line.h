// Makes a secret for tests: 64 hexadecimal digits that look random and depend only on `letter`. A
// capital letter gives the same digits in capitals.
#pragma once

#include <string>
#include <string_view>

namespace leeway {

inline std::string secret_digits(char letter) {
  const bool large = letter >= 'A' && letter <= 'Z';
  const std::string_view digits = large ? "0123456789ABCDEF" : "0123456789abcdef";
  auto state = static_cast<unsigned>(large ? letter - 'A' + 'a' : letter);
  std::string text;
  for (int i = 0; i < 64; ++i) {
    state = state * 1664525u + 1013904223u;
    text += digits[state >> 28];
  }
  return text;
}

}  // namespace leeway
