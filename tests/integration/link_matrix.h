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
  const char* netem;   // on every link, for what arrives at its rank
  double loss = 0.0;   // part of a link's packets, in the long run
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

  // One process a link runs `scenario`, with more variables than all have; their facts by rank.
  // Says how long that took and what the links lost.
  std::vector<Facts> run(const std::vector<std::string>& scenario, const Environment& more = {});

  // Every operation on blocks of 0 B to 64 KiB, exactly right; with every element type where the
  // links are clean.
  void expect_exact_operations();
  // Every operation that may lose, right in what all ranks agree on; and a Replica.
  void expect_lossy_operations();
  // Averages have the error that the ratio rule has at this loss, and all ranks the same bits.
  void expect_lossy_averages();

  EmulatedLinks& links() { return *links_; }

 private:
  void expect_loss_of_links(const std::vector<Facts>& all);

  Environment environment_;
  std::unique_ptr<EmulatedLinks> links_;
};

}  // namespace leeway::integration
