#include "report/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/read_number.h"

namespace leeway::sim {
namespace {

constexpr int kDigits = 4;          // digits of a number for people
constexpr int kErrorDigits = 2;     // digits of a standard error
constexpr double kFixedMin = 1e-4;  // smaller ones are written with an exponent
constexpr double kFixedMax = 1e9;
// smallest error that is written without an exponent
constexpr double kErrorMin = 1e-6;

template <typename... Format>
std::string characters(double value, Format... format) {
  std::array<char, 400> text;  // fixed notation of 1e308 fits
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format...);
  return {text.data(), end.ptr};
}

// The power of ten of the first digit.
int magnitude(double value) {
  return value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
}

// Puts commas between groups of three digits before the decimal point.
std::string grouped(std::string text) {
  const std::size_t first = text.front() == '-' ? 1 : 0;
  std::size_t at = std::min(text.find('.'), text.size());
  while (at > first + 3) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string fixed(double value, int decimals) {
  return grouped(characters(value, std::chars_format::fixed, std::clamp(decimals, 0, 12)));
}

bool writes_fixed(double value) {
  return value == 0 || (std::abs(value) >= kFixedMin && std::abs(value) < kFixedMax);
}

std::string without_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string exact_text(double value) {
  return std::isfinite(value) ? characters(value) : "";
}

std::string milliseconds_text(std::int64_t ns) {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  const std::string sign = ns < 0 ? "-" : "";
  std::string fraction = std::to_string(std::abs(ns % kNsPerMs));
  fraction.insert(0, 6 - fraction.size(), '0');
  return sign + without_zeros(std::to_string(std::abs(ns / kNsPerMs)) + "." + fraction);
}

std::string short_text(double value) {
  if (!std::isfinite(value)) return "–";
  if (!writes_fixed(value)) return characters(value, std::chars_format::scientific, kDigits - 1);
  return without_zeros(fixed(value, kDigits - 1 - magnitude(value)));
}

std::string short_text(double mean, double error) {
  if (!std::isfinite(mean) || !std::isfinite(error) || error == 0) return short_text(mean);
  const double larger = std::max(std::abs(mean), error);
  if (!writes_fixed(larger) || error < kErrorMin) {
    return short_text(mean) + " ± " + characters(error, std::chars_format::scientific, 1);
  }
  const int decimals = kErrorDigits - 1 - magnitude(error);
  return fixed(mean, decimals) + " ± " + fixed(error, decimals);
}

std::string count_text(std::uint64_t value) {
  return grouped(std::to_string(value));
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  if (!read_number(text, value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 16> text;
  text.fill('0');
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  std::copy(digits.data(), end.ptr, text.end() - (end.ptr - digits.data()));
  return {text.data(), text.size()};
}

}  // namespace leeway::sim
