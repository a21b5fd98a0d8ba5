// Makes texts from other processes, hosts or files safe to show. A terminal obeys escape sequences
// in such a text: they move its cursor, change its title, or make it type.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace leeway {

// Replaces control and non-ASCII characters by '?'.
inline void make_plain(std::span<char> text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
}

inline std::string plain(std::string_view text) {
  std::string clean(text);
  make_plain(clean);
  return clean;
}

}  // namespace leeway
