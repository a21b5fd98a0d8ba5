#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/paths.h"
#include "format.h"

namespace leeway::tools::doctor {
namespace {

// The report shows at most this many paths, the slowest ones.
constexpr std::size_t kPathsShown = 56;

std::string firewall_text(const PathsReport& report) {
  std::string port = "29501 and up (LEEWAY_PORT=29501 on all hosts; now the system chooses)";
  if (report.udp_port != 0)
    port = std::to_string(report.udp_port) +
           " and up (LEEWAY_PORT), one for each rank and lane of a host";
  std::string tcp = "that of LEEWAY_RENDEZVOUS";
  const std::size_t colon = report.rendezvous.rfind(':');
  if (colon != std::string::npos) tcp = report.rendezvous.substr(colon + 1);
  return "What a firewall must let through:\n  UDP, port " + port +
         ": between all hosts, both ways\n  TCP, port " + tcp + ": from all hosts to rank 0's\n";
}

}  // namespace

std::string to_text(const PathsReport& report) {
  std::string out =
      format("%zu ranks over %s, %s, datagrams of %zu bytes\n\n  rank  address\n",
             report.addresses.size(), report.transport.c_str(),
             report.sealed ? "sealed" : "NOT sealed (leeway keygen, LEEWAY_SECRET_FILE)",
             report.datagram_bytes);
  for (std::size_t rank = 0; rank < report.addresses.size(); ++rank)
    out += format("  %4zu  %s\n", rank, report.addresses[rank].c_str());
  std::vector<PathFinding> paths = report.paths;
  if (paths.size() > kPathsShown) {
    std::sort(paths.begin(), paths.end(),
              [](const auto& a, const auto& b) { return a.bits_per_second < b.bits_per_second; });
    paths.resize(kPathsShown);
    out += format("\nThe slowest %zu of %zu:", kPathsShown, report.paths.size());
  }
  out += "\n  from    to   rtt least    median         rate      loss\n";
  for (const PathFinding& path : paths) {
    out += format("  %4d  %4d  %7.2f ms  %5.2f ms  %7.1f Mb/s  %6.2f %%\n", path.from, path.to,
                  path.rtt_seconds * 1e3, path.rtt_median_seconds * 1e3, path.bits_per_second / 1e6,
                  path.loss * 100);
  }
  if (report.congestion == "none") {
    out +=
        "\nNothing paced this: what is lost may be our own overflow of a queue. Set LEEWAY_RATE to "
        "a line's rate.\n";
  }
  return out + "\n" + firewall_text(report);
}

std::string to_json(const PathsReport& report) {
  nlohmann::json paths = nlohmann::json::array();
  for (const PathFinding& path : report.paths) {
    paths.push_back({{"from", path.from},
                     {"to", path.to},
                     {"rtt_seconds", path.rtt_seconds},
                     {"rtt_median_seconds", path.rtt_median_seconds},
                     {"bits_per_second", path.bits_per_second},
                     {"loss", path.loss}});
  }
  return nlohmann::json({{"addresses", report.addresses},
                         {"transport", report.transport},
                         {"sealed", report.sealed},
                         {"congestion", report.congestion},
                         {"datagram_bytes", report.datagram_bytes},
                         {"udp_port", report.udp_port},
                         {"rendezvous", report.rendezvous},
                         {"paths", paths}})
             .dump(2) +
         "\n";
}

}  // namespace leeway::tools::doctor
