#include "report/run_json.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "base/plain_text.h"
#include "base/read_number.h"
#include "report/number_text.h"

namespace leeway::sim {
namespace {

using RunJson = nlohmann::json;

constexpr const char* kFormatName = "leeway-sim-run";
constexpr std::array<const char*, 4> kVerdicts = {"passed", "failed", "skipped", "not_applicable"};

// Lists the fields of a record. Writing and reading both use this list, so that neither can forget
// a field. A list of records becomes one array for each field.
template <typename Visit>
void each_field(RoundRecord*, Visit&& visit) {
  visit("round", &RoundRecord::round);
  visit("begin_ns", &RoundRecord::begin_ns);
  visit("first_submit_ns", &RoundRecord::first_submit_ns);
  visit("end_ns", &RoundRecord::end_ns);
  visit("call_ns_max", &RoundRecord::call_ns_max);
  visit("call_ns_median", &RoundRecord::call_ns_median);
  visit("live_ranks", &RoundRecord::live_ranks);
  visit("failed_calls", &RoundRecord::failed_calls);
  visit("deadline_cuts", &RoundRecord::deadline_cuts);
  visit("expected", &RoundRecord::expected);
  visit("arrived", &RoundRecord::arrived);
  visit("arrived_first", &RoundRecord::arrived_first);
  visit("bytes_sent", &RoundRecord::bytes_sent);
  visit("contributors_mean", &RoundRecord::contributors_mean);
  visit("contributors_min", &RoundRecord::contributors_min);
  visit("error_mean_square", &RoundRecord::error_mean_square);
  visit("value_mean_square", &RoundRecord::value_mean_square);
  visit("drift_pair", &RoundRecord::drift_pair);
  visit("loss", &RoundRecord::loss);
}

template <typename Member>
auto counter(Member member) {
  return [member](auto& link) -> auto& {
    return link.counters.*member;
  };
}

template <typename Visit>
void each_field(LinkRecord*, Visit&& visit) {
  visit("name", &LinkRecord::name);
  visit("offered", counter(&LinkCounters::offered));
  visit("passed", counter(&LinkCounters::passed));
  visit("lost", counter(&LinkCounters::lost));
  visit("copied", counter(&LinkCounters::copied));
  visit("queue_full", counter(&LinkCounters::queue_full));
  visit("queue_early", counter(&LinkCounters::queue_early));
  visit("marked", counter(&LinkCounters::marked));
  visit("trimmed", counter(&LinkCounters::trimmed));
  visit("corrupted", counter(&LinkCounters::corrupted));
  visit("reordered", counter(&LinkCounters::reordered));
  visit("bytes_passed", counter(&LinkCounters::bytes_passed));
  visit("queue_bytes_max", counter(&LinkCounters::queue_bytes_max));
  visit("utilisation", &LinkRecord::utilisation);
}

template <typename Visit>
void each_field(CheckRecord*, Visit&& visit) {
  visit("id", &CheckRecord::id);
  visit("title", &CheckRecord::title);
  visit("verdict", &CheckRecord::verdict);
  visit("checked", &CheckRecord::checked);
  visit("failures", &CheckRecord::failures);
  visit("first_failure", &CheckRecord::first_failure);
}

template <typename Visit>
void each_field(Measure*, Visit&& visit) {
  visit("name", &Measure::name);
  visit("value", &Measure::value);
}

template <typename Visit>
void each_field(NetworkCounters*, Visit&& visit) {
  visit("sent", &NetworkCounters::sent);
  visit("copied", &NetworkCounters::copied);
  visit("delivered", &NetworkCounters::delivered);
  visit("lost", &NetworkCounters::lost);
}

template <typename Visit>
void each_number(Visit&& visit) {
  visit("seed", &RunRecord::seed);
  visit("round_ms", &RunRecord::round_ms);
  visit("call_ms", &RunRecord::call_ms);
  visit("simulated_ns", &RunRecord::simulated_ns);
  visit("events", &RunRecord::events);
  visit("packets", &RunRecord::packets);
}

template <typename Visit>
void each_list(Visit&& visit) {
  visit("rounds", &RunRecord::rounds);
  visit("links", &RunRecord::links);
  visit("checks", &RunRecord::checks);
  visit("measures", &RunRecord::measures);
}

template <typename T>
RunJson to_value(const T& value) {
  return value;
}
RunJson to_value(const double& value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}
RunJson to_value(const Verdict& value) {
  return kVerdicts[static_cast<std::size_t>(value)];
}
RunJson to_value(const std::vector<double>& values) {
  RunJson array = RunJson::array();
  for (const double value : values) array.push_back(to_value(value));
  return array;
}

// Checks numbers, because JSON's own conversions silently turn -1 into 2^32 - 1 and 0.5 into 0.
template <typename T>
void from_value(const RunJson& json, T& value) {
  if constexpr (std::is_integral_v<T>) {
    const bool fits =
        json.is_number_integer() && (std::is_signed_v<T> || json.is_number_unsigned());
    if (!fits || json.get<T>() != json) throw std::out_of_range("a count is no count");
  }
  json.get_to(value);
}
void from_value(const RunJson& json, double& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) {
    value = json.get<double>();
  } else if (json.is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto text = json.get<std::string>();
    if (text != "inf" && text != "-inf") throw std::out_of_range("a number is no number");
    value = text == "inf" ? kInfinity : -kInfinity;
  }
}
void from_value(const RunJson& json, Verdict& value) {
  const auto text = json.get<std::string>();
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) {
    if (text != kVerdicts[i]) continue;
    value = static_cast<Verdict>(i);
    return;
  }
  throw std::out_of_range("a verdict is unknown");
}
// Removes characters that a terminal could take for commands, because the file may come from
// another machine.
void from_value(const RunJson& json, std::string& value) {
  value = plain(json.get<std::string>());
}
void from_value(const RunJson& json, std::vector<double>& values) {
  values.assign(json.size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) from_value(json.at(i), values[i]);
}

template <typename Record>
RunJson columns(const std::vector<Record>& records) {
  RunJson json = {{"count", records.size()}};
  each_field(static_cast<Record*>(nullptr), [&](const char* name, auto field) {
    RunJson column = RunJson::array();
    for (const Record& record : records) column.push_back(to_value(std::invoke(field, record)));
    json[name] = std::move(column);
  });
  return json;
}

template <typename Record>
void read_columns(const RunJson& json, std::vector<Record>& records) {
  // The count may be damaged, so memory is reserved only once a column has that many entries.
  const std::size_t count = json.at("count").get<std::size_t>();
  each_field(static_cast<Record*>(nullptr), [&](const char* name, auto field) {
    const RunJson& column = json.at(name);
    if (!column.is_array() || column.size() != count) throw std::out_of_range("a list is cut");
    records.resize(count);
    for (std::size_t i = 0; i < count; ++i) from_value(column[i], std::invoke(field, records[i]));
  });
}

RunRecord read_run(const RunJson& json) {
  RunRecord run;
  each_number([&](const char* name, auto field) { from_value(json.at(name), run.*field); });
  each_list([&](const char* name, auto field) { read_columns(json.at(name), run.*field); });
  each_field(&run.network, [&](const char* name, auto field) {
    json.at("network").at(name).get_to(run.network.*field);
  });
  const auto hash = json.at("trace_hash").get<std::string>();
  if (!read_number(hash, run.trace_hash, 16)) throw std::out_of_range("the hash is none");
  return run;
}

}  // namespace

std::string run_json(const RunRecord& run) {
  RunJson json = {{"format", kFormatName}, {"version", kRunFormat}};
  each_number([&](const char* name, auto field) { json[name] = to_value(run.*field); });
  each_list([&](const char* name, auto field) { json[name] = columns(run.*field); });
  each_field(static_cast<NetworkCounters*>(nullptr),
             [&](const char* name, auto field) { json["network"][name] = run.network.*field; });
  json["trace_hash"] = hash_text(run.trace_hash);
  return json.dump(-1, ' ', false, RunJson::error_handler_t::replace) + "\n";
}

Result<RunRecord> parse_run_json(std::string_view text) {
  const RunJson json = RunJson::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", RunJson()) != kFormatName) {
    return Status::error(StatusCode::kInvalidArgument, "this is no run record of leeway sim");
  }
  if (json.value("version", RunJson()) != kRunFormat) {
    return Status::error(StatusCode::kInvalidArgument,
                         "the run record has another format than version %d", kRunFormat);
  }
  try {
    return read_run(json);
  } catch (const std::exception& error) {  // includes JSON's own exceptions
    return Status::error(StatusCode::kInvalidArgument, "the run record is damaged: %s",
                         error.what());
  }
}

}  // namespace leeway::sim
