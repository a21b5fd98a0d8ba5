// Reads a text that is exactly one number.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace leeway {

// Sets `number` to the text's value. Returns false if the text is not exactly one number, or if the
// number does not fit the type; `number` is then undefined. `format` (a base, for instance) is
// passed on to std::from_chars().
template <typename Number, typename... Format>
bool read_number(std::string_view text, Number& number, Format... format) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, format...);
  return error == std::errc() && stop == end;
}

}  // namespace leeway
