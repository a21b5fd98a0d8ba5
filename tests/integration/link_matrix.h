// Checks of a transport over links that lose, delay, duplicate and reorder: the same for every
// transport.
//
// A suite is a fixture derived from LinkMatrix that names its transport, and a TEST_P for each
// check:
//
//   class Netem : public LinkMatrix { protected: Netem() : LinkMatrix({{"LEEWAY_TRANSPORT",
//   "udp"}}) {} }; TEST_P(Netem, EveryOperationIsExact) { expect_exact_operations(); }
//   INSTANTIATE_TEST_SUITE_P(Links, Netem, testing::ValuesIn(kLinkConditions), name_of_condition);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <ostream>

#include "integration/emulated_links.h"
#include "integration/rank_group.h"

namespace leeway::integration {

struct LinkCondition {
  const char* name;
  const char* netem;   // netem's arguments on every link, for packets that arrive at its rank
  double loss = 0.0;   // share of a link's packets that is lost, in the long run
  double burst = 1.0;  // mean length of a loss burst in packets
  // Packets that come late or out of order may be asked for again before they arrive.
  bool in_order = true;
};

inline constexpr LinkCondition kTenthLost = {.name = "Loss", .netem = "loss 10%", .loss = 0.1};
inline constexpr std::array<LinkCondition, 6> kLinkConditions = {{
    {.name = "Clean", .netem = ""},
    kTenthLost,
    {.name = "Bursts", .netem = "loss gemodel 1% 9%", .loss = 0.1, .burst = 11.1},
    {.name = "Duplicates", .netem = "duplicate 10%"},
    {.name = "Reordering", .netem = "delay 5ms reorder 25% 50%", .in_order = false},
    {.name = "Delay", .netem = "delay 20ms"},
}};

inline void PrintTo(const LinkCondition& link, std::ostream* out) {
  *out << (*link.netem == '\0' ? "nothing" : link.netem);
}

inline std::string name_of_condition(const testing::TestParamInfo<LinkCondition>& info) {
  return info.param.name;
}

class LinkMatrix : public testing::TestWithParam<LinkCondition> {
 protected:
  // `environment` of all ranks chooses their transport, unless run() does.
  explicit LinkMatrix(Environment environment);

  void SetUp() override;  // skips where there are no such links

  // Runs `scenario` in one process for each link, with additional variables, and returns their
  // facts by rank. Prints how long that took and how much the links lost.
  std::vector<Facts> run(const std::vector<std::string>& scenario, const Environment& more = {});

  // Expects every operation on blocks of 0 B to 64 KiB to be exactly right; with every element type
  // on links that lose nothing.
  void expect_exact_operations();
  // Expects every operation that may lose data to be right as far as all ranks must agree; a
  // Replica, too.
  void expect_lossy_operations();
  // Expects averages to have the error of the ratio rule at this loss, and all ranks to have the
  // same bits.
  void expect_lossy_averages();

  EmulatedLinks& links() { return *links_; }

 private:
  void expect_loss_of_links(const std::vector<Facts>& all);

  Environment environment_;
  std::unique_ptr<EmulatedLinks> links_;
};

}  // namespace leeway::integration
