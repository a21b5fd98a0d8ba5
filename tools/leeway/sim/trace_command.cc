#include "sim/trace_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "exit_code.h"
#include "trace/packet_filter.h"
#include "trace/packet_text.h"
#include "trace/pcapng.h"
#include "trace/trace_diff.h"
#include "trace/trace_reader.h"

namespace leeway::tools::simulation {
namespace {

constexpr int kExitDifferent = 1;
constexpr double kNsPerMs = 1e6;

struct TraceArguments {
  std::string file;
  std::string other;  // second trace of diff; output of pcapng
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string step;
  std::string link;
  double after_ms = 0;
  double before_ms = 0;
  std::uint64_t limit = UINT64_MAX;
  std::size_t context = 5;
  // These tell whether a filter was given, which its value cannot, because every value is valid.
  CLI::Option* from_option = nullptr;
  CLI::Option* to_option = nullptr;
  CLI::Option* before_option = nullptr;
};

void add_filters(CLI::App& command, TraceArguments& a) {
  a.from_option = command.add_option("--from", a.from, "Only packets from this rank");
  a.to_option = command.add_option("--to", a.to, "Only packets to this rank");
  command.add_option("--step", a.step,
                     "Only this: sent, delivered, duplicated, queue_full, queue_early, lost, "
                     "blocked, or loss for the last four");
  command.add_option("--link", a.link, "Only what happens on this link, by name");
  command.add_option("--after", a.after_ms, "From this simulated millisecond on")
      ->check(CLI::Range(0.0, 9e12));
  a.before_option =
      command.add_option("--before", a.before_ms, "Until before this simulated millisecond")
          ->check(CLI::Range(0.0, 9e12));
}

Result<sim::trace::PacketFilter> filter_of(const TraceArguments& a) {
  sim::trace::PacketFilter filter;
  if (!a.step.empty()) {
    const Status step = sim::trace::set_step(filter, a.step);
    if (!step.ok()) return step;
  }
  if (a.from_option->count() > 0) filter.from = a.from;
  if (a.to_option->count() > 0) filter.to = a.to;
  filter.link = a.link;
  filter.after_ns = static_cast<std::int64_t>(a.after_ms * kNsPerMs);
  if (a.before_option->count() > 0) {
    filter.before_ns = static_cast<std::int64_t>(a.before_ms * kNsPerMs);
  }
  return filter;
}

int show(const TraceArguments& a) {
  const Result<sim::trace::PacketFilter> filter = filter_of(a);
  if (!filter.ok()) return complain(filter.status(), kExitUsage);
  Result<sim::trace::TraceReader> reader = sim::trace::TraceReader::open(a.file);
  if (!reader.ok()) return complain(reader.status(), kExitUsage);
  for (std::uint64_t shown = 0; shown < a.limit;) {
    const Result<const sim::trace::Packet*> next = reader->next();
    if (!next.ok()) return complain(next.status(), kExitUsage);
    if (*next == nullptr) break;
    const std::string& link = reader->link_name(**next);
    if (!filter->admits(**next, link)) continue;
    std::printf("%s\n", sim::trace::packet_text(**next, link).c_str());
    ++shown;
  }
  return 0;
}

void print_side(const std::string& title, const std::vector<std::string>& lines) {
  std::printf("%s\n", title.c_str());
  for (const std::string& line : lines) std::printf("    %s\n", line.c_str());
  if (lines.empty()) std::printf("    (ends here)\n");
}

int diff(const TraceArguments& a) {
  const auto compared = sim::trace::compare_traces(a.file, a.other, a.context);
  if (!compared.ok()) return complain(compared.status(), kExitUsage);
  for (const std::string& note : compared->notes) std::printf("different %s\n", note.c_str());
  if (!compared->difference) {
    std::printf("the same %llu packet steps\n", static_cast<unsigned long long>(compared->packets));
    return 0;
  }
  const sim::trace::TraceDifference& difference = *compared->difference;
  std::printf("the first %llu packet steps are the same; no. %llu differs%s%s\n",
              static_cast<unsigned long long>(compared->packets),
              static_cast<unsigned long long>(difference.index) + 1,
              difference.fields.empty() ? "" : " in ", difference.fields.c_str());
  if (!difference.before.empty()) print_side("both", difference.before);
  print_side(a.file, difference.first);
  print_side(a.other, difference.second);
  return kExitDifferent;
}

int pcapng(const TraceArguments& a) {
  const Result<sim::trace::PacketFilter> filter = filter_of(a);
  if (!filter.ok()) return complain(filter.status(), kExitUsage);
  const Result<std::uint64_t> written = sim::trace::write_pcapng(a.file, a.other, *filter);
  if (!written.ok()) return complain(written.status(), kExitUsage);
  std::printf("%llu packet steps in %s\n", static_cast<unsigned long long>(*written),
              a.other.c_str());
  return 0;
}

}  // namespace

void add_trace_commands(CLI::App& trace, int& exit_code) {
  const auto add = [&](const char* name, const char* help, int (*run)(const TraceArguments&)) {
    CLI::App* const command = trace.add_subcommand(name, help);
    const auto arguments = std::make_shared<TraceArguments>();
    command->add_option("FILE", arguments->file, "A trace that `leeway sim --trace` wrote")
        ->required();
    command->callback([arguments, run, &exit_code] { exit_code = run(*arguments); });
    return std::pair(command, arguments);
  };
  const auto [show_command, show_arguments] = add("show", "A line for each packet step", show);
  add_filters(*show_command, *show_arguments);
  show_command->add_option("--limit", show_arguments->limit, "Stop after so many lines");

  const auto [diff_command, diff_arguments] = add("diff", "Where two runs part", diff);
  diff_command->add_option("OTHER", diff_arguments->other, "The other trace")->required();
  diff_command->add_option("--context", diff_arguments->context, "Lines around the difference")
      ->capture_default_str();

  const auto [pcapng_command, pcapng_arguments] =
      add("pcapng", "The same for Wireshark and tshark", pcapng);
  pcapng_command->add_option("OUT", pcapng_arguments->other, "The file to write")->required();
  add_filters(*pcapng_command, *pcapng_arguments);
}

}  // namespace leeway::tools::simulation
