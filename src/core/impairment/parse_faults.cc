// Implements parse_faults() of leeway/options.h for texts such as
// "loss=0.1,burst=8,delay=5ms,list=0>1/*/0/3,1>2/*/0/4,seed=3".
//
// Items are separated by commas. `list` and `link` have comma-separated values themselves: an item
// without '=' belongs to the key before it.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/read_number.h"
#include "impairment/fault_plan.h"
#include "leeway/options.h"

namespace leeway {
inline namespace v0 {
namespace {

constexpr const char* kKeys = "loss, burst, dup, reorder, corrupt, delay, seed, link, list";

bool parse_delay(std::string_view text, Duration& out) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  const std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [name, ns] : kUnits) {
    // This comparison refuses NaN, infinities, and values too large for a Duration.
    const double scaled = value * ns;
    if (unit != name || !(scaled > -1e18 && scaled < 1e18)) continue;
    out = Duration(static_cast<Duration::rep>(scaled));
    return true;
  }
  return false;
}

bool parse_link_loss(std::string_view text, std::vector<double>& out) {
  out.clear();
  while (true) {
    const std::size_t comma = text.find(',');
    double value = 0.0;
    if (!read_number(text.substr(0, comma), value)) return false;
    out.push_back(value);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// Result of assign(). bad_value: the value does not parse.
enum class Assigned { yes, unknown_key, bad_value };

Assigned assign(std::string_view key, std::string_view value, FaultOptions& out) {
  const auto result = [](bool parsed) { return parsed ? Assigned::yes : Assigned::bad_value; };
  if (key == "loss") return result(read_number(value, out.loss));
  if (key == "burst") return result(read_number(value, out.burst));
  if (key == "dup") return result(read_number(value, out.duplicate));
  if (key == "reorder") return result(read_number(value, out.reorder));
  if (key == "corrupt") return result(read_number(value, out.corrupt));
  if (key == "seed") return result(read_number(value, out.seed));
  if (key == "delay") return result(parse_delay(value, out.delay));
  if (key == "link") return result(parse_link_loss(value, out.link_loss));
  if (key != "list") return Assigned::unknown_key;
  out.list = value;
  return Assigned::yes;
}

// Removes the first item from `text` and returns it: "key=value", and the parts after it that have
// no '=' and so belong to its value.
std::string_view take_item(std::string_view& text) {
  std::size_t end = text.find(',');
  while (end != std::string_view::npos) {
    const std::size_t next = text.find(',', end + 1);
    const std::string_view following =
        text.substr(end + 1, next == std::string_view::npos ? next : next - end - 1);
    if (following.find('=') != std::string_view::npos) break;
    end = next;
  }
  const std::string_view item = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return item;
}

int shown(std::string_view text) {
  return static_cast<int>(std::min<std::size_t>(text.size(), 60));
}

}  // namespace

Result<FaultOptions> parse_faults(std::string_view text) {
  FaultOptions options;
  while (!text.empty()) {
    const std::string_view item = take_item(text);
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    switch (assign(key, value, options)) {
      case Assigned::yes:
        break;
      case Assigned::unknown_key:
        return Status::error(StatusCode::kInvalidArgument,
                             "fault \"%.*s\": unknown key; the keys are %s", shown(item),
                             item.data(), kKeys);
      case Assigned::bad_value:
        return Status::error(StatusCode::kInvalidArgument, "fault \"%.*s\": not a number%s",
                             shown(item), item.data(),
                             key == "delay" ? " with a unit (ns, us, ms, s)" : "");
    }
  }
  if (Status status = impairment::check_faults(options); !status.ok()) return status;
  return options;
}

}  // namespace v0
}  // namespace leeway
