#include "numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "errors.h"
#include "leeway/options.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

[[noreturn]] void refuse_time(nb::handle value, const char* what) {
  throw Failure(Status::error(
      StatusCode::kInvalidArgument,
      "%s: %s is no time; give seconds (0.02), a text with a unit (\"20ms\"), a timedelta, or None",
      what, nb::repr(value).c_str()));
}

double unit_of(std::string_view name) {
  if (name == "ns") return 1e-9;
  if (name == "us") return 1e-6;
  if (name == "ms") return 1e-3;
  if (name == "s") return 1;
  if (name == "min") return 60;
  return 0;
}

Duration from_seconds(double seconds, nb::handle value, const char* what) {
  if (std::isnan(seconds) || seconds < 0) refuse_time(value, what);
  constexpr double kMost = 9e9;  // limit of int64 nanoseconds, in seconds
  if (seconds > kMost) return no_deadline;
  return Duration(std::llround(seconds * 1e9));
}

}  // namespace

std::int64_t to_number(nb::handle value, const char* what, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const bool whole = PyIndex_Check(value.ptr()) != 0 && nb::try_cast(value, number);
  if (whole && number >= least && number <= most) return number;
  throw Failure(Status::error(
      StatusCode::kInvalidArgument, "%s: %s is no whole number from %lld to %lld", what,
      nb::repr(value).c_str(), static_cast<long long>(least), static_cast<long long>(most)));
}

Duration to_duration(nb::handle value, const char* what) {
  if (value.is_none()) return no_deadline;
  if (nb::isinstance<nb::str>(value)) {
    const std::string text = nb::cast<std::string>(value);
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const double unit = unit_of({rest, static_cast<std::size_t>(end - rest)});
    if (error != std::errc() || unit == 0) refuse_time(value, what);
    return from_seconds(number * unit, value, what);
  }
  if (nb::hasattr(value, "total_seconds"))
    return from_seconds(nb::cast<double>(value.attr("total_seconds")()), value, what);
  double seconds = 0;
  if (PyBool_Check(value.ptr()) || !nb::try_cast(value, seconds)) refuse_time(value, what);
  return from_seconds(seconds, value, what);
}

double to_seconds(Duration duration) {
  if (duration == no_deadline) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(duration).count();
}

}  // namespace leeway::python
