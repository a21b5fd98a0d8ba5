#include "report.h"

#include <cinttypes>
#include <nlohmann/json.hpp>

#include "format.h"

namespace leeway::lab {
namespace {

using nlohmann::ordered_json;
using tools::format;

struct Totals {
  std::uint64_t queue_full = 0;   // dropped, no room in the queue
  std::uint64_t queue_early = 0;  // dropped by RED or CoDel
  std::uint64_t random_loss = 0;
  std::uint64_t marked = 0;  // with "congestion experienced"
};

Totals totals_of(const LabReport& report) {
  Totals totals;
  for (const LinkReport& link : report.links) {
    totals.queue_full += link.counters.queue_full;
    totals.queue_early += link.counters.queue_early;
    totals.random_loss += link.random_loss();
    totals.marked += link.counters.marked;
  }
  return totals;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double share_of(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double milliseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

std::string links_text(const LabReport& report) {
  std::string text = format("%-14s %9s %9s %9s %9s %9s %9s %9s\n", "wan_lab: link", "packets",
                            "passed", "full %", "early %", "lost %", "queue KB", "Mb/s");
  for (const LinkReport& link : report.links) {
    const sim::LinkCounters& counters = link.counters;
    const std::uint64_t offered = link.offered();
    const double mbps = static_cast<double>(counters.bytes_passed) * 8e-6;
    text += format("  %-12s %9" PRIu64 " %9" PRIu64 " %9.2f %9.2f %9.2f %9.0f %9.2f\n",
                   link.name.c_str(), offered, link.passed(), percent(counters.queue_full, offered),
                   percent(counters.queue_early, offered), percent(link.random_loss(), offered),
                   static_cast<double>(counters.queue_bytes_max) / 1e3,
                   share_of(mbps, report.precision.seconds));
  }
  return text;
}

std::string totals_text(const LabReport& report) {
  const Totals totals = totals_of(report);
  const WanCounters& counters = report.counters;
  const std::uint64_t dropped = totals.queue_full + totals.queue_early;
  std::string text = format("wan_lab: %" PRIu64 " packets in %.2f s: %" PRIu64 " delivered, ",
                            counters.taken, report.precision.seconds, counters.delivered);
  text += format("%" PRIu64 " dropped by full queues (%.2f %%), %" PRIu64 " lost at random,\n",
                 dropped, percent(dropped, counters.taken), totals.random_loss);
  text += format("         %" PRIu64 " longer than the path's MTU, %" PRIu64 " not carried, ",
                 counters.too_long, counters.not_carried);
  return text +
         format("%" PRIu64 " marked, %" PRIu64 " under way\n", totals.marked, report.under_way);
}

std::string precision_text(const Precision& precision) {
  const auto late_ms = [&](double share) {
    return milliseconds(precision.late.quantile_ns(share));
  };
  std::string text = format("wan_lab: up to %.3f ms (99 %%) in its devices, ",
                            milliseconds(precision.intake.quantile_ns(0.99)));
  text += format("late by %.3f ms (median), %.3f (99 %%), %.3f (most); ", late_ms(0.5),
                 late_ms(0.99), late_ms(1));
  text += format("%.0f %% of a core, waited for one %.0f %% of the time\n",
                 100 * share_of(precision.processor_s, precision.seconds),
                 100 * share_of(precision.waited_s, precision.seconds));
  if (precision.kept_up()) return text;
  text += format(
      "wan_lab: WARNING: it fell behind its own clock: %.1f %% of the packets came 1 ms or "
      "more late,\n",
      100 * precision.late_share());
  return text + format("         its devices lost %" PRIu64
                       ". These figures are not the network's.\n",
                       precision.device_drops);
}

ordered_json link_json(const LinkReport& link, double seconds) {
  const sim::LinkCounters& counters = link.counters;
  return {{"name", link.name},
          {"rate_bps", link.rate_bps},
          {"offered", link.offered()},
          {"passed", link.passed()},
          {"bytes_passed", counters.bytes_passed},
          {"bps", share_of(static_cast<double>(counters.bytes_passed) * 8, seconds)},
          {"queue_full", counters.queue_full},
          {"queue_early", counters.queue_early},
          {"random_loss", link.random_loss()},
          {"marked", counters.marked},
          {"queue_bytes_max", counters.queue_bytes_max}};
}

ordered_json times_json(const TimeHistogram& times) {
  return {{"p50_ms", milliseconds(times.quantile_ns(0.5))},
          {"p99_ms", milliseconds(times.quantile_ns(0.99))},
          {"p99.9_ms", milliseconds(times.quantile_ns(0.999))},
          {"max_ms", milliseconds(times.max_ns())}};
}

ordered_json precision_json(const Precision& precision) {
  return {{"kept_up", precision.kept_up()},
          {"intake", times_json(precision.intake)},
          {"late", times_json(precision.late)},
          {"late_share", precision.late_share()},
          {"pass", times_json(precision.pass)},
          {"device_drops", precision.device_drops},
          {"processor_s", precision.processor_s},
          {"waited_s", precision.waited_s},
          {"ahead_of_others", precision.ahead_of_others}};
}

}  // namespace

std::string report_text(const LabReport& report) {
  return links_text(report) + totals_text(report) + precision_text(report.precision);
}

std::string report_json(const LabReport& report) {
  const Totals totals = totals_of(report);
  const WanCounters& counters = report.counters;
  ordered_json links = ordered_json::array();
  for (const LinkReport& link : report.links) {
    links.push_back(link_json(link, report.precision.seconds));
  }
  const ordered_json whole = {{"format", "leeway-wan-lab"},
                              {"version", 1},
                              {"seconds", report.precision.seconds},
                              {"packets",
                               {{"taken", counters.taken},
                                {"taken_bytes", counters.taken_bytes},
                                {"delivered", counters.delivered},
                                {"delivered_bytes", counters.delivered_bytes},
                                {"queue_full", totals.queue_full},
                                {"queue_early", totals.queue_early},
                                {"random_loss", totals.random_loss},
                                {"too_long", counters.too_long},
                                {"not_carried", counters.not_carried},
                                {"marked", totals.marked},
                                {"under_way", report.under_way}}},
                              {"links", links},
                              {"precision", precision_json(report.precision)}};
  return whole.dump(2) + "\n";
}

}  // namespace leeway::lab
