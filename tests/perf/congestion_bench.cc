// Behaviour of the controllers of src/core/congestion in virtual time: a table for each requirement
// on congestion control. Takes ten minutes on one core. Every machine prints the same, because time
// is simulated.
//
//   congestion_bench [--control=wan] [TABLE...]     tables: see kTables at the end
#include "perf/congestion_tables.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace leeway {

CongestionControl studied = CongestionControl::wan;
std::string studied_name = "wan";

namespace {

struct Table {
  const char* name;
  void (*print)();
};
constexpr Table kTables[] = {
    {"alone", print_alone},     {"many", print_many},       {"beside", print_beside},
    {"changes", print_changes}, {"fast", print_fast_lines}, {"slow", print_slow_lines},
    {"sites", print_sites},     {"wide", print_wide},       {"shared", print_shared},
    {"fabric", print_fabric},   {"incast", print_incast},   {"fall", print_fall},
    {"switch", print_switch},   {"host", print_host},       {"jitter", print_jitter},
    {"bursts", print_bursts},   {"lanes", print_lanes}};

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  std::vector<std::string_view> chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--control=scavenger") {
      leeway::studied = leeway::CongestionControl::scavenger;
      leeway::studied_name = "scavenger";
    } else if (word == "--control=fabric") {
      leeway::studied = leeway::CongestionControl::fabric;
      leeway::studied_name = "fabric";
    } else if (word != "--control=wan") {
      chosen.push_back(word);
    }
  }
  for (const leeway::Table& table : leeway::kTables) {
    if (chosen.empty() || std::count(chosen.begin(), chosen.end(), table.name) > 0) table.print();
  }
}
