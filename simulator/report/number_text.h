// Converts numbers to text: exact for programs, short for people. Never depends on the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leeway::sim {

// Returns the shortest text that reads back as the same double, or an empty text if the value is
// not finite.
std::string exact_text(double value);

// Returns nanoseconds as milliseconds, exactly: "1.5" for 1500000.
std::string milliseconds_text(std::int64_t ns);

// Returns four significant digits: "1,234", "0.001234", "1.234e-07". Returns "–" for a number that
// is not finite.
std::string short_text(double value);
// Returns "12.34 ± 0.12": two digits of the error, and as many decimals of the mean. If the error
// is unknown, the text has only the mean.
std::string short_text(double mean, double error);
// "1,234,567"
std::string count_text(std::uint64_t value);

// Returns the number if the whole text is a number, else nullopt.
std::optional<double> number_of(std::string_view text);

// "0123456789abcdef"
std::string hash_text(std::uint64_t hash);

}  // namespace leeway::sim
