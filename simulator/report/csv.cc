// Writes rounds.csv and links.csv in the format of RFC 4180, but with bare line feeds.
#include <string>
#include <string_view>

#include "report/cell_summary.h"
#include "report/number_text.h"
#include "report/report.h"

namespace leeway::sim {
namespace {

constexpr std::string_view kRoundColumns =
    "cell,seed,round,begin_ms,submit_ms,round_ms,call_ms_max,call_ms_median,live_ranks,"
    "failed_calls,deadline_cuts,expected,arrived,arrived_first,bytes_sent,contributors_mean,"
    "contributors_min,error_mean_square,value_mean_square,drift_pair,loss\n";
constexpr std::string_view kLinkColumns =
    "cell,seed,link,utilisation,bytes_passed,data_offered,data_passed,data_lost,data_copied,"
    "control_offered,control_passed,control_lost,control_copied,cross_offered,cross_passed,"
    "cross_lost,cross_copied,queue_full,queue_early,marked,trimmed,corrupted,reordered,"
    "queue_bytes_max\n";

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string leading_names(const CellRecord& cell) {
  std::string names;
  for (const scenario::Setting& setting : cell.settings) names += csv_field(setting.field) + ",";
  return names;
}

// Returns the first columns of a line: settings, cell and seed.
std::string leading_values(const CellRecord& cell, const RunRecord& run) {
  std::string values;
  for (const scenario::Setting& setting : cell.settings) {
    values += (setting.acts ? csv_field(setting.value) : std::string()) + ",";
  }
  return values + std::to_string(cell.index) + "," + std::to_string(run.seed);
}

void add(std::string& line, std::string_view value) {
  line.append(1, ',').append(value);
}
void add(std::string& line, std::uint64_t value) {
  add(line, std::to_string(value));
}
void add(std::string& line, double value) {
  add(line, exact_text(value));
}
void add_ms(std::string& line, std::int64_t ns) {
  add(line, milliseconds_text(ns));
}
void add_if_known(std::string& line, double value) {
  add(line, value < 0 ? kUnknown : value);
}

void add_round(std::string& line, const RoundRecord& round) {
  add(line, std::uint64_t{round.round});
  add_ms(line, round.begin_ns);
  add_ms(line, round.first_submit_ns);
  add_ms(line, round.end_ns - round.first_submit_ns);
  add_ms(line, round.call_ns_max);
  add_ms(line, round.call_ns_median);
  add(line, std::uint64_t{round.live_ranks});
  add(line, std::uint64_t{round.failed_calls});
  add(line, std::uint64_t{round.deadline_cuts});
  add(line, round.expected);
  add(line, round.arrived);
  add(line, round.arrived_first);
  add(line, round.bytes_sent);
  add_if_known(line, round.contributors_mean);
  add(line, round.contributors_mean < 0 ? std::string() : std::to_string(round.contributors_min));
  add_if_known(line, round.error_mean_square);
  add_if_known(line, round.value_mean_square);
  add_if_known(line, round.drift_pair);
  add_if_known(line, round.loss);
}

void add_link(std::string& line, const LinkRecord& link) {
  const LinkCounters& counters = link.counters;
  add(line, csv_field(link.name));
  add(line, link.utilisation);
  add(line, counters.bytes_passed);
  for (int kind = 0; kind < kTrafficKinds; ++kind) {
    for (const auto* count :
         {&counters.offered, &counters.passed, &counters.lost, &counters.copied}) {
      add(line, (*count)[static_cast<std::size_t>(kind)]);
    }
  }
  for (const std::uint64_t count :
       {counters.queue_full, counters.queue_early, counters.marked, counters.trimmed,
        counters.corrupted, counters.reordered, counters.queue_bytes_max}) {
    add(line, count);
  }
}

// Writes a header line, and one line for each entry of `records` of every run.
template <typename Record>
std::string lines(std::span<const CellRecord> cells, std::string_view columns,
                  std::vector<Record> RunRecord::*records,
                  void (*add_record)(std::string&, const Record&)) {
  const std::vector<const CellRecord*> ordered = cells_by_index(cells);
  std::string text = ordered.empty() ? std::string() : leading_names(*ordered.front());
  text += columns;
  for (const CellRecord* cell : ordered) {
    for (const RunRecord* run : runs_by_seed(*cell)) {
      const std::string leading = leading_values(*cell, *run);
      for (const Record& record : run->*records) {
        text += leading;
        add_record(text, record);
        text += '\n';
      }
    }
  }
  return text;
}

}  // namespace

std::string rounds_csv(std::span<const CellRecord> cells) {
  return lines(cells, kRoundColumns, &RunRecord::rounds, add_round);
}

std::string links_csv(std::span<const CellRecord> cells) {
  return lines(cells, kLinkColumns, &RunRecord::links, add_link);
}

}  // namespace leeway::sim
