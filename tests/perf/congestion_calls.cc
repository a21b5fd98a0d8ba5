// Tables of all-reduces: the library's core over the simulated network.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "perf/congestion_tables.h"
#include "run/run.h"
#include "scenario/parse.h"

namespace leeway {

namespace {

// Several seeds, because the network loses at random.
constexpr std::uint64_t kSeeds = 5;

struct Call {
  double ms = 0;        // median time of the calls, without the first
  double overflow = 0;  // share of all packets that overflowed, including the first call
  double cross_mbps = 0;
  double slowest_ms = 0;  // slowest seed's
};

struct Place {
  std::string topology;
  int ranks = 4;
  double mib = 4;
  double line_mbps = 100;
  double rtt_ms = 50;
  double queue_ms = 10;
  double loss = 0;
  int rounds = 8;
  std::string more;  // further lines of the scenario
  double fixed_mbps = 0;
  std::uint32_t socket_bytes = 8 << 20;
  std::string jitter = {};  // delay of a hop in place of a fixed one; not between sites
  int lanes = 1;            // for each rank
};

// The delay of one hop; a round trip has four hops
std::string hop_delay(const Place& place) {
  if (!place.jitter.empty()) return place.jitter;
  return "fixed: " + std::to_string(place.rtt_ms / 4);
}

// Returns the scenario's links: a line for each rank, or one line between two sites.
std::string links_of(const Place& place) {
  char text[1024];
  const double one_way_ms = place.rtt_ms / 2;
  if (place.topology == "switch") {
    std::snprintf(text, sizeof text,
                  "topology { star {} }\n"
                  "link { tier: uplink rate_mbps: %g delay_ms { fixed: %g } }\n"
                  "link { tier: downlink rate_mbps: %g delay_ms { fixed: %g } queue { bytes: "
                  "100000 } }\n",
                  place.line_mbps, one_way_ms / 2, place.line_mbps, one_way_ms / 2);
    return text;
  }
  const auto queue_bytes = static_cast<long>(place.queue_ms * place.line_mbps * 125);
  const char* const form =
      place.topology == "sites"
          ? "group { name: \"a\" ranks: \"0-%d\" } group { name: \"b\" ranks: \"%d-\" }\n"
            "topology { regions { names: [\"a\", \"b\"] rtt_ms: [0.2, %g, %g, 0.2] } }\n"
          : "topology { leaf_spine { hosts_per_leaf: 1 spines: 1 } }\n";
  char head[256];
  std::snprintf(head, sizeof head, form, place.ranks / 2 - 1, place.ranks / 2, place.rtt_ms,
                place.rtt_ms);
  const bool sites = place.topology == "sites";
  std::snprintf(text, sizeof text,
                "%slink { tier: uplink rate_mbps: %g queue { bytes: 4000000 } }\n"
                "link { tier: downlink rate_mbps: %g queue { bytes: 4000000 } }\n"
                "link { tier: fabric %s rate_mbps: %g queue { bytes: %ld } %s }\n",
                head, std::max(1000.0, 2 * place.line_mbps), std::max(1000.0, 2 * place.line_mbps),
                sites ? "between: \"a\" and: \"b\"" : "", place.line_mbps, queue_bytes,
                sites ? "" : ("delay_ms { " + hop_delay(place) + " }").c_str());
  return text;
}

Call all_reduce(const Place& place, std::string_view delivery, std::string_view control,
                std::uint64_t seed) {
  char text[4096];
  std::snprintf(text, sizeof text,
                "ranks: %d rounds: %d contents: %s\n"
                "operation { kind: all_reduce bytes: %ld socket_bytes: %u lanes: %d delivery { "
                "kind: %s deadline_ms: 60000 } "
                "spread: %s }\n"
                "%s congestion { control: %s rate_mbps: %g }\n",
                place.ranks, place.rounds, place.lanes > 1 ? "true" : "false",
                static_cast<long>(place.mib * 1048576), place.socket_bytes, place.lanes,
                std::string(delivery).c_str(), std::string(delivery).c_str(),
                links_of(place).c_str(), std::string(control).c_str(),
                place.fixed_mbps > 0 ? place.fixed_mbps : 0.95 * place.line_mbps);
  std::string scenario_text = text + place.more;
  if (place.loss > 0) {
    char loss[128];
    const char* const where =
        place.topology == "sites" ? "tier: fabric between: \"a\" and: \"b\"" : "tier: uplink";
    std::snprintf(loss, sizeof loss, "link { %s loss { random { p: %g } } }\n", where, place.loss);
    scenario_text += loss;
  }
  auto scenario = sim::scenario::parse_text(scenario_text, "bench");
  if (!scenario.ok()) {
    std::fprintf(stderr, "%s\n%s\n", std::string(scenario.status().text()).c_str(), text);
    std::exit(1);
  }
  auto record = sim::run(scenario.value(), seed);
  if (!record.ok()) {
    std::fprintf(stderr, "%s\n", std::string(record.status().text()).c_str());
    std::exit(1);
  }
  std::vector<double> ms(record.value().round_ms.begin() + 1, record.value().round_ms.end());
  std::sort(ms.begin(), ms.end());
  double full = 0;
  double sent = 0;
  for (const sim::LinkRecord& link : record.value().links) {
    full += static_cast<double>(link.counters.queue_full);
  }
  for (const auto count : record.value().network.sent) sent += static_cast<double>(count);
  Call call{.ms = ms[ms.size() / 2], .overflow = full / sent};
  for (const sim::Measure& measure : record.value().measures) {
    if (measure.name.starts_with("cross[") && measure.name.ends_with("goodput_mbps")) {
      call.cross_mbps += measure.value;
    }
  }
  return call;
}

Call all_reduce(const Place& place, std::string_view delivery, std::string_view control) {
  std::vector<Call> calls;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    calls.push_back(all_reduce(place, delivery, control, seed));
  std::sort(calls.begin(), calls.end(),
            [](const Call& one, const Call& other) { return one.ms < other.ms; });
  calls[kSeeds / 2].slowest_ms = calls.back().ms;
  return calls[kSeeds / 2];
}

void print_all_reduce(const Place& place, const char* title, std::string_view delivery) {
  std::printf("| %s, %.*s |", title, static_cast<int>(delivery.size()), delivery.data());
  for (const std::string& control : {std::string("none"), std::string("fixed"), studied_name}) {
    const Call call = all_reduce(place, delivery, control);
    std::printf(" %.0f to %.0f; %.1f %% |", call.ms, call.slowest_ms, 100 * call.overflow);
    std::fflush(stdout);
  }
  std::printf("\n");
}

void heads(const char* title) {
  std::printf("\n%s\n\n| case | none | fixed, 95 %% | %s |\n|---|---|---|---|\n", title,
              studied_name.c_str());
}

}  // namespace

void print_fast_lines() {
  heads("4 ranks, 4 MiB, 500 Mb/s, 20 ms; ms and own overflow");
  for (const double queue_ms : {50.0, 20.0, 2.0}) {
    for (const double loss : {0.0, 0.001, 0.01, 0.05, 0.1}) {
      char title[64];
      std::snprintf(title, sizeof title, "queue %g ms, loss %g %%", queue_ms, 100 * loss);
      print_all_reduce({.line_mbps = 500, .rtt_ms = 20, .queue_ms = queue_ms, .loss = loss}, title,
                       "exact");
      if (queue_ms == 50)
        print_all_reduce({.line_mbps = 500, .rtt_ms = 20, .queue_ms = queue_ms, .loss = loss},
                         title, "best_effort");
    }
  }
}

void print_bursts() {
  heads("4 ranks, 4 MiB, 500 Mb/s, 20 ms, queue 50 ms; losses in bursts of 8");
  for (const double loss : {0.01, 0.05, 0.1}) {
    for (const char* delivery : {"exact", "best_effort"}) {
      char title[64];
      std::snprintf(title, sizeof title, "loss %g %%", 100 * loss);
      char links[96];
      std::snprintf(links, sizeof links,
                    "link { tier: uplink loss { bursts { p: %g burst: 8 } } }\n", loss);
      print_all_reduce(
          {.line_mbps = 500, .rtt_ms = 20, .queue_ms = 50, .rounds = 70, .more = links}, title,
          delivery);
    }
  }
  for (const char* jitter : {"normal { mean: 5 deviation: 0.1 }",
                             "normal { mean: 5 deviation: 0.3 } keep_order: true"}) {
    print_all_reduce({.line_mbps = 500,
                      .rtt_ms = 20,
                      .queue_ms = 50,
                      .rounds = 25,
                      .more = "link { tier: uplink loss { bursts { p: 0.05 burst: 8 } } }\n",
                      .jitter = jitter},
                     jitter, "exact");
  }
}

void print_slow_lines() {
  heads("4 ranks, 4 MiB, 100 Mb/s, 50 ms");
  for (const double queue_ms : {10.0, 100.0}) {
    for (const double loss : {0.0, 0.02}) {
      for (const char* delivery : {"exact", "best_effort"}) {
        char title[64];
        std::snprintf(title, sizeof title, "queue %g ms, loss %g %%", queue_ms, 100 * loss);
        print_all_reduce({.queue_ms = queue_ms, .loss = loss}, title, delivery);
      }
    }
  }
}

void print_sites() {
  heads("two sites of 2 ranks, one line of 100 Mb/s, 50 ms; 4 MiB");
  for (const double queue_ms : {10.0, 50.0}) {
    for (const double loss : {0.0, 0.01, 0.1}) {
      char title[64];
      std::snprintf(title, sizeof title, "queue %g ms, loss %g %%", queue_ms, 100 * loss);
      print_all_reduce({.topology = "sites", .queue_ms = queue_ms, .loss = loss}, title, "exact");
    }
  }
}

// Four CUBIC flows from rank 0 to rank 1 share rank 0's line with the all-reduce. A fair share of
// the five is 20 Mb/s.
void print_shared() {
  std::printf(
      "\n8 ranks, 8 MiB, 100 Mb/s, 20 ms, 4 CUBIC flows through rank 0's line: rank 0's rate of a "
      "fair "
      "share, a flow's\n\n| queue | fixed, 20 Mb/s | %s |\n|---|---|---|\n",
      studied_name.c_str());
  for (const double queue_ms : {4.0, 20.0}) {
    std::printf("| %g ms |", queue_ms);
    for (const std::string& control : {std::string("fixed"), studied_name}) {
      Place place{.ranks = 8, .mib = 8, .rtt_ms = 20, .queue_ms = queue_ms, .rounds = 6};
      place.more = "cross_traffic { from: 0 to: 1 cubic { flows: 4 } }\n";
      place.fixed_mbps = 20;
      const Call call = all_reduce(place, "exact", control);
      const double mbps = 2.0 * 7 / 8 * 8 * 1.048576 * 8 * 1.05 / call.ms * 1e3;
      std::printf(" %.0f ms, %.2f, %.2f |", call.ms, mbps / 20, call.cross_mbps / 80);
    }
    std::printf("\n");
  }
}

void print_wide() {
  heads("8 ranks, 100 Mb/s, 100 ms, queue 50 ms");
  for (const double mib : {8.0, 32.0}) {
    for (const double loss : {0.0, 0.001}) {
      char title[64];
      std::snprintf(title, sizeof title, "%g MiB, loss %g %%", mib, 100 * loss);
      print_all_reduce(
          {.ranks = 8, .mib = mib, .rtt_ms = 100, .queue_ms = 50, .loss = loss, .rounds = 6}, title,
          "exact");
    }
  }
}

void print_switch() {
  std::printf(
      "\nall-reduce at one switch, 0.05 ms, buffers of 100 KB a port; ms, loss\n\n"
      "| ranks, MiB, Gb/s | none | fixed, 95 %% | wan | fabric |\n|---|---|---|---|---|\n");
  for (const int ranks : {8, 32}) {
    for (const double gbps : {1.0, 10.0}) {
      for (const char* delivery : {"exact", "best_effort"}) {
        std::printf("| %d, 8, %g, %s |", ranks, gbps, delivery);
        for (const char* control : {"none", "fixed", "wan", "fabric"}) {
          Place place{.topology = "switch",
                      .ranks = ranks,
                      .mib = 8,
                      .line_mbps = gbps * 1e3,
                      .rtt_ms = 0.05};
          const Call call = all_reduce(place, delivery, control);
          std::printf(" %.2f; %.1f %% |", call.ms, 100 * call.overflow);
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  }
}

// Rank 1 stops for a while in every round, and has a small socket buffer.
void print_host() {
  std::printf(
      "\n4 ranks, 4 MiB exact, 100 Mb/s, 20 ms, queue 20 ms; rank 1 stands still for 60 ms a "
      "round, "
      "sockets of 128 KiB\n\n| loss | fixed, 95 %% | wan |\n|---|---|---|\n");
  for (const double loss : {0.0, 0.01}) {
    std::printf("| %g %% |", 100 * loss);
    for (const char* control : {"fixed", "wan"}) {
      Place place{.rtt_ms = 20, .queue_ms = 20, .loss = loss, .rounds = 16};
      place.socket_bytes = 131072;
      for (int round = 1; round < place.rounds; ++round) {
        place.more += "pause { rank: 1 from_round: " + std::to_string(round) +
                      " after_ms: 100 for_ms: 60 }\n";
      }
      const Call call = all_reduce(place, "exact", control);
      std::printf(" %.0f; %.1f %% |", call.ms, 100 * call.overflow);
    }
    std::printf("\n");
  }
}

// Jitter, with and without reordering. Runs more seeds than other tables, because with some seeds
// calls took far longer than with most.
void print_jitter() {
  std::printf(
      "\n4 ranks, 4 MiB exact, 20 rounds; median round in ms: the median of 24 seeds, and the "
      "slowest\n\n| rate, round trip, queue, loss; delay of each of four hops | fixed, 95 %% | %s "
      "|\n|---|---|---|\n",
      studied_name.c_str());
  const Place fast{.line_mbps = 500, .rtt_ms = 20, .rounds = 20};
  const Place slow{.line_mbps = 100, .rtt_ms = 50, .rounds = 20};
  constexpr const char* kOvertaking = "normal { mean: 5 deviation: 1 }";
  struct Row {
    Place place;
    double queue_ms;
    double loss;
    const char* jitter;
  };
  for (Row row :
       {Row{fast, 50, 0, "fixed: 5"}, Row{fast, 50, 0, "normal { mean: 5 deviation: 0.1 }"},
        Row{fast, 50, 0, kOvertaking}, Row{fast, 50, 0.001, kOvertaking},
        Row{fast, 50, 0.01, kOvertaking}, Row{fast, 50, 0.1, kOvertaking},
        Row{fast, 50, 0, "pareto { mean: 5 deviation: 0.5 } keep_order: true"},
        Row{fast, 50, 0, "normal { mean: 5 deviation: 0.3 } keep_order: true"},
        Row{fast, 50, 0, "normal { mean: 5 deviation: 1 } keep_order: true"},
        Row{slow, 250, 0, "normal { mean: 12.5 deviation: 2 }"},
        Row{slow, 10, 0, "normal { mean: 12.5 deviation: 2 }"}}) {
    row.place.queue_ms = row.queue_ms;
    row.place.loss = row.loss;
    row.place.jitter = row.jitter;
    std::printf("| %g Mb/s, %g ms, %g ms, %g %%; %s |", row.place.line_mbps, row.place.rtt_ms,
                row.queue_ms, 100 * row.loss, row.jitter);
    for (const std::string& control : {std::string("fixed"), studied_name}) {
      std::vector<double> ms;
      for (std::uint64_t seed = 1; seed <= 24; ++seed)
        ms.push_back(all_reduce(row.place, "exact", control, seed).ms);
      std::sort(ms.begin(), ms.end());
      std::printf(" %.0f, %.0f |", ms[ms.size() / 2], ms.back());
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

void print_lanes_of_calls() {
  std::printf(
      "\nAll-reduces of 4 MiB, 4 ranks, exact, 500 Mb/s, 20 ms, queue 50 ms; ms and own "
      "overflow\n\n"
      "| lanes, loss | fixed, 95 %% | %s |\n|---|---|---|\n",
      studied_name.c_str());
  for (const int lanes : {1, 2, 4}) {
    for (const double loss : {0.0, 0.01}) {
      std::printf("| %d, %g %% |", lanes, 100 * loss);
      const Place place{
          .line_mbps = 500, .rtt_ms = 20, .queue_ms = 50, .loss = loss, .lanes = lanes};
      for (const std::string& control : {std::string("fixed"), studied_name}) {
        const Call call = all_reduce(place, "exact", control);
        std::printf(" %.0f to %.0f; %.1f %% |", call.ms, call.slowest_ms, 100 * call.overflow);
        std::fflush(stdout);
      }
      std::printf("\n");
    }
  }
}

}  // namespace leeway
