// Turns the command-line description of a network into a scenario of the simulator, whose links the
// laboratory runs. `leeway sim` takes the same text.
//
//   sites of one rank:      rank - uplink - (star) - downlink - rank
//   sites of several ranks: ranks of a site meet without delay; each site has a line, up and down
//
// A line has a rate, a queue in front of it, losses and half of the one-way delay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::lab {

// The arguments as given on the command line; empty if not given.
struct NetworkArguments {
  int ranks = 4;
  int sites = 0;  // 0: a site for each rank
  std::string rate;
  std::string downlink;  // default: the rate
  std::string rtt;
  std::string jitter;
  bool reorder = false;
  std::string queue = "50ms";
  std::string ecn;
  std::string loss;
  double burst = 1;
  std::string gilbert;  // "p,r,1-h,1-k", as netem's gemodel
  std::vector<std::string> links;
  std::string scenario_path;
};

inline constexpr int kRanksMax = 250;  // limited by the last byte of their addresses

// Returns the scenario's text. The error for a wrong argument names it.
Result<std::string> scenario_text(const NetworkArguments& arguments);

// Returns the scenario that the laboratory runs: from the arguments, or from the file that they
// name.
Result<sim::scenario::Scenario> plan_network(const NetworkArguments& arguments);

// Limit on the length of packets, beyond which they are dropped. "1300": always; "1300@5s": from 5
// s on; "2:1300@5s": only to and from rank 2.
struct PathMtu {
  std::uint32_t bytes = 0;
  std::int64_t from_ns = 0;
  std::optional<std::uint32_t> rank;
};
Result<PathMtu> parse_path_mtu(const std::string& text);

}  // namespace leeway::lab
