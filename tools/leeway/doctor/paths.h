// `leeway doctor --paths`: all ranks together measure the path between every two of them.
#pragma once

#include <string>
#include <vector>

#include "leeway/communicator.h"

namespace leeway::tools::doctor {

struct PathFinding {
  int from = 0;
  int to = 0;
  double rtt_seconds = 0;  // least of some round trips of 4 bytes
  double rtt_median_seconds = 0;
  double bits_per_second = 0;  // bits of payload
  double loss = 0;             // share of packets that had to be sent again
};

struct PathsReport {
  std::vector<std::string> addresses;  // addresses for data, by rank
  std::vector<PathFinding> paths;
  std::size_t datagram_bytes = 0;
  bool sealed = false;
  std::string congestion;  // congestion control that paced: "none", "wan", ...
  std::string transport;
  int udp_port = 0;        // 0: the system chooses a port
  std::string rendezvous;  // empty if it is not known
};

// Measures all paths. All ranks must call it; rank 0 gets the report, the others an empty one.
// Takes at most 8 s at any line rate, except when the repair of lost packets takes longer.
Result<PathsReport> measure_paths(Communicator& communicator);

// Returns a table of the paths, and below it the ports that firewalls must let through.
std::string to_text(const PathsReport& report);
std::string to_json(const PathsReport& report);

// Returns the rank with which `rank` exchanges data in this round, or -1 for none. If `size` is
// even there are size - 1 rounds, otherwise `size`. All pairs meet once.
int partner_of(int rank, int round, int size);

}  // namespace leeway::tools::doctor
