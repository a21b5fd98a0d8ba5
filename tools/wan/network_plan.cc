#include "network_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/read_number.h"
#include "quantity.h"
#include "scenario/parse.h"
#include "topology/topology.h"

namespace leeway::lab {
namespace {

using sim::scenario::Scenario;

Status of_argument(const char* name, const Status& status) {
  return Status::error(status.code(), "%s: %s", name, status.c_str());
}

// Writes a number with nine digits, so that rounding errors do not show: 1 % stays 0.01.
std::string number(double value) {
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9)
          .ptr;
  return {text.data(), end};
}

// Properties that all lines share. If a path has two lines, each line has half of the delay, and
// both lines together lose the given share of packets.
struct Line {
  std::optional<double> rate_mbps;
  std::string queue;  // text of the scenario, as the next two
  std::string loss;
  std::string delay;

  std::string text(const std::string& head, bool passive) const {
    std::string rule = "link { " + head;
    if (rate_mbps) rule += " rate_mbps: " + number(*rate_mbps) + queue;
    if (!passive) rule += delay + loss;
    return rule + " }\n";
  }
};

// Reads a queue length in bytes, or in time at the line's rate.
Result<std::uint64_t> bytes_or_time(const std::string& text, double rate_mbps) {
  if (const auto bytes = parse_bytes(text); bytes.ok()) return *bytes;
  const auto ms = parse_time_ms(text);
  if (ms.ok()) return static_cast<std::uint64_t>(std::ceil(*ms * rate_mbps * 1000 / 8));
  return Status::error(StatusCode::kInvalidArgument,
                       "'%s' is neither a time, such as 10ms, nor a size, such as 64K",
                       text.c_str());
}

Result<std::string> queue_text(const NetworkArguments& arguments, double rate_mbps) {
  constexpr std::uint64_t kOnePacket = 1500;
  const auto bytes = bytes_or_time(arguments.queue, rate_mbps);
  if (!bytes.ok()) return of_argument("--queue", bytes.status());
  std::string text =
      " queue { bytes: " + std::to_string(std::max(*bytes, kOnePacket)) + " packets: 1048576";
  if (!arguments.ecn.empty()) {
    const auto ecn_bytes = bytes_or_time(arguments.ecn, rate_mbps);
    if (!ecn_bytes.ok()) return of_argument("--ecn", ecn_bytes.status());
    text += " ecn_at: " + std::to_string(std::max<std::uint64_t>(*ecn_bytes, 1));
  }
  return text + " }";
}

Result<std::string> gilbert_text(const std::string& text) {
  static constexpr std::array<const char*, 4> kNames{"p", "r", "one_minus_h", "one_minus_k"};
  std::string options;
  std::size_t begin = 0;
  std::size_t count = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto share = parse_share(text.substr(begin, end - begin));
    if (!share.ok() || count == kNames.size()) {
      return Status::error(StatusCode::kInvalidArgument,
                           "--gilbert: '%s' is not p[,r[,1-h[,1-k]]], such as 0.2%%,20%%,80%%,0",
                           text.c_str());
    }
    options += std::string(" ") + kNames[count++] + ": " + number(*share);
    begin = end + 1;
  }
  return " gilbert_elliott {" + options + " }";
}

// Returns the loss model of one line. `lines`: number of lines on a path.
Result<std::string> loss_text(const NetworkArguments& arguments, int lines) {
  std::string models;
  if (!arguments.loss.empty()) {
    const auto share = parse_share(arguments.loss);
    if (!share.ok()) return of_argument("--loss", share.status());
    const double each = 1 - std::pow(1 - *share, 1.0 / lines);
    if (!(arguments.burst >= 1)) {
      return Status::error(StatusCode::kInvalidArgument,
                           "--burst: %g is not a mean length in packets, 1 or more",
                           arguments.burst);
    }
    if (each > 0 && arguments.burst > 1) {
      models += " bursts { p: " + number(each) + " burst: " + number(arguments.burst) + " }";
    } else if (each > 0) {
      models += " random { p: " + number(each) + " }";
    }
  }
  if (!arguments.gilbert.empty()) {
    const auto chain = gilbert_text(arguments.gilbert);
    if (!chain.ok()) return chain.status();
    models += *chain;
  }
  return models.empty() ? models : " loss {" + models + " }";
}

Result<std::string> delay_text(const NetworkArguments& arguments, int lines) {
  double way_ms = 0;
  double jitter_ms = 0;
  if (!arguments.rtt.empty()) {
    const auto rtt_ms = parse_time_ms(arguments.rtt);
    if (!rtt_ms.ok()) return of_argument("--rtt", rtt_ms.status());
    way_ms = *rtt_ms / 2 / lines;
  }
  if (!arguments.jitter.empty()) {
    const auto parsed = parse_time_ms(arguments.jitter);
    if (!parsed.ok()) return of_argument("--jitter", parsed.status());
    jitter_ms = *parsed / lines;
  }
  if (jitter_ms > way_ms) {
    return Status::error(
        StatusCode::kInvalidArgument, "--jitter: %s is more than half of the round trip of %s",
        arguments.jitter.c_str(), arguments.rtt.empty() ? "0 ms" : arguments.rtt.c_str());
  }
  if (way_ms == 0) return std::string();
  if (jitter_ms == 0) return " delay_ms { fixed: " + number(way_ms) + " }";
  return " delay_ms { uniform { from: " + number(way_ms - jitter_ms) +
         " to: " + number(way_ms + jitter_ms) +
         " } keep_order: " + (arguments.reorder ? "false" : "true") + " }";
}

// Makes a line of this rate. `name`: the argument that gave the rate, for errors.
Result<Line> make_line(const NetworkArguments& arguments, const char* name, const std::string& rate,
                       int lines) {
  Line line;
  if (!rate.empty() && rate != "none") {
    const auto mbps = parse_rate_mbps(rate);
    if (!mbps.ok()) return of_argument(name, mbps.status());
    line.rate_mbps = *mbps;
    auto queue = queue_text(arguments, *mbps);
    if (!queue.ok()) return queue.status();
    line.queue = *std::move(queue);
  }
  auto loss = loss_text(arguments, lines);
  if (!loss.ok()) return loss.status();
  auto delay = delay_text(arguments, lines);
  if (!delay.ok()) return delay.status();
  line.loss = *std::move(loss);
  line.delay = *std::move(delay);
  return line;
}

Status check_counts(const NetworkArguments& arguments) {
  if (arguments.ranks < 2 || arguments.ranks > kRanksMax) {
    return Status::error(StatusCode::kInvalidArgument, "--ranks: %d is outside 2 to %d",
                         arguments.ranks, kRanksMax);
  }
  const int sites = arguments.sites;
  if (sites == 0 || (sites >= 2 && sites <= arguments.ranks && arguments.ranks % sites == 0)) {
    return {};
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "--sites: %d ranks cannot be shared evenly by %d sites (2 or more)",
                       arguments.ranks, sites);
}

Status check_shared_line(const NetworkArguments& arguments) {
  if (!arguments.downlink.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "--downlink: the line of a site of several ranks has one --rate; give "
                         "--link for others");
  }
  if (arguments.gilbert.empty()) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "--gilbert: a packet between sites passes two lines; give each its losses "
                       "by --link");
}

bool has_shared_sites(const NetworkArguments& arguments) {
  return arguments.sites != 0 && arguments.sites != arguments.ranks;
}

Result<std::string> star_text(const NetworkArguments& arguments) {
  const auto up = make_line(arguments, "--rate", arguments.rate, 1);
  if (!up.ok()) return up.status();
  const std::string& rate = arguments.downlink.empty() ? arguments.rate : arguments.downlink;
  const auto down = make_line(arguments, "--downlink", rate, 1);
  if (!down.ok()) return down.status();
  return "topology { star {} }\n" + up->text("tier: uplink", false) +
         down->text("tier: downlink", true);
}

Result<std::string> sites_text(const NetworkArguments& arguments) {
  if (const Status status = check_shared_line(arguments); !status.ok()) return status;
  const auto line = make_line(arguments, "--rate", arguments.rate, 2);
  if (!line.ok()) return line.status();
  return "topology { leaf_spine { spines: 1 hosts_per_leaf: " +
         std::to_string(arguments.ranks / arguments.sites) + " } }\n" +
         line->text("tier: fabric", false);
}

// Refuses scenarios that cannot be applied to real packets.
Status check_possible(const Scenario& scenario) {
  for (const sim::scenario::Link& link : scenario.link()) {
    if (!link.queue().has_trim()) continue;
    return Status::error(StatusCode::kUnsupported,
                         "a queue that trims packets is for simulations only");
  }
  if (scenario.ranks() >= 2 && scenario.ranks() <= static_cast<unsigned>(kRanksMax)) return {};
  return Status::error(StatusCode::kInvalidArgument, "the scenario has %u ranks; 2 to %d can run",
                       scenario.ranks(), kRanksMax);
}

}  // namespace

Result<std::string> scenario_text(const NetworkArguments& arguments) {
  if (const Status status = check_counts(arguments); !status.ok()) return status;
  const auto lines = has_shared_sites(arguments) ? sites_text(arguments) : star_text(arguments);
  if (!lines.ok()) return lines.status();
  std::string text = "ranks: " + std::to_string(arguments.ranks) + "\n" + *lines;
  for (const std::string& link : arguments.links) text += "link { " + link + " }\n";
  return text;
}

Result<Scenario> plan_network(const NetworkArguments& arguments) {
  Result<Scenario> scenario = [&]() -> Result<Scenario> {
    if (!arguments.scenario_path.empty()) {
      return sim::scenario::read_file(arguments.scenario_path);
    }
    const auto text = scenario_text(arguments);
    if (!text.ok()) return text.status();
    return sim::scenario::parse_text(*text, "network");
  }();
  if (!scenario.ok()) return scenario.status();
  if (!arguments.scenario_path.empty() && !arguments.links.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "--link goes with --rate and its like; the scenario's file has links");
  }
  if (const Status status = check_possible(*scenario); !status.ok()) return status;
  // Reads the files that the scenario names, so that a missing one is reported before anything
  // starts.
  if (const auto topology = sim::Topology::make(*scenario); !topology.ok()) {
    return topology.status();
  }
  return scenario;
}

Result<PathMtu> parse_path_mtu(const std::string& text) {
  constexpr std::uint64_t kBytesMin = 68, kBytesMax = 65535;  // IPv4's limits
  PathMtu mtu;
  std::string_view rest = text;
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    std::uint32_t rank = 0;
    if (!read_number(rest.substr(0, colon), rank)) {
      return Status::error(StatusCode::kInvalidArgument, "--path-mtu: '%.*s' is not a rank",
                           static_cast<int>(colon), rest.data());
    }
    mtu.rank = rank;
    rest.remove_prefix(colon + 1);
  }
  const std::size_t at = rest.find('@');
  const auto bytes = parse_bytes(rest.substr(0, at));
  if (!bytes.ok()) return of_argument("--path-mtu", bytes.status());
  if (*bytes < kBytesMin || *bytes > kBytesMax) {
    return Status::error(StatusCode::kInvalidArgument, "--path-mtu: %s is outside 68 to 65535",
                         text.c_str());
  }
  mtu.bytes = static_cast<std::uint32_t>(*bytes);
  if (at == std::string_view::npos) return mtu;
  const auto ms = parse_time_ms(rest.substr(at + 1));
  if (!ms.ok()) return of_argument("--path-mtu", ms.status());
  mtu.from_ns = static_cast<std::int64_t>(*ms * 1e6);
  return mtu;
}

}  // namespace leeway::lab
