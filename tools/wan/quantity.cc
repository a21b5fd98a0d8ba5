#include "quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace leeway::lab {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

Status refuse(const char* what, std::string_view text, const char* examples) {
  return Status::error(StatusCode::kInvalidArgument, "'%.*s' is not a %s, such as %s",
                       static_cast<int>(text.size()), text.data(), what, examples);
}

// Parses a number that is not negative and is followed by one of the units.
template <std::size_t kUnits>
std::optional<double> parse(std::string_view text, const std::array<Unit, kUnits>& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

Result<double> parse_rate_mbps(std::string_view text) {
  static constexpr std::array<Unit, 9> kUnits{{{"Mb", 1},
                                               {"Gb", 1e3},
                                               {"kb", 1e-3},
                                               {"Mbit", 1},
                                               {"Gbit", 1e3},
                                               {"kbit", 1e-3},
                                               {"mbit", 1},
                                               {"gbit", 1e3},
                                               {"", 1e-6}}};
  std::string_view rate = text;
  if (rate.ends_with("/s")) rate.remove_suffix(2);
  const std::optional<double> mbps = parse(rate, kUnits);
  if (!mbps || *mbps <= 0) return refuse("rate", text, "100Mb, 1.5Gb or 800kb (bits a second)");
  return *mbps;
}

Result<double> parse_time_ms(std::string_view text) {
  static constexpr std::array<Unit, 4> kUnits{{{"ms", 1}, {"s", 1e3}, {"us", 1e-3}, {"ns", 1e-6}}};
  const std::optional<double> ms = parse(text, kUnits);
  if (!ms) return refuse("time", text, "50ms, 200us or 1.5s");
  return *ms;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Unit, 5> kUnits{
      {{"", 1}, {"B", 1}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024 * 1024 * 1024}}};
  const std::optional<double> bytes = parse(text, kUnits);
  if (!bytes || *bytes < 1 || *bytes > 1e12) return refuse("size", text, "1500, 64K or 1M");
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

Result<double> parse_share(std::string_view text) {
  static constexpr std::array<Unit, 2> kUnits{{{"%", 0.01}, {"", 1}}};
  const std::optional<double> share = parse(text, kUnits);
  if (!share || *share > 1) return refuse("share", text, "1% or 0.01");
  return *share;
}

}  // namespace leeway::lab
