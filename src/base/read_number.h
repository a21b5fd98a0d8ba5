// Reads a text that is exactly one number.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace leeway {

// Returns false if the text is anything else, or the number does not fit; `number` is then
// undefined. `format` goes to std::from_chars(), which takes a base there, for instance.
template <typename Number, typename... Format>
bool read_number(std::string_view text, Number& number, Format... format) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, format...);
  return error == std::errc() && stop == end;
}

}  // namespace leeway
