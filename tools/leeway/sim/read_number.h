// Reads a text that is exactly one whole number.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace leeway::tools::simulation {

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

}  // namespace leeway::tools::simulation
