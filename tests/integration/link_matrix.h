// Checks that hold for every transport, over links that lose, delay, duplicate and reorder packets.
//
// A suite is a fixture that derives from LinkMatrix and names its transport, with a TEST_P for each
// check:
//
//   class Netem : public LinkMatrix {
//    protected:
//     Netem() : LinkMatrix({{"LEEWAY_TRANSPORT", "udp"}}) {}
//   };
//   TEST_P(Netem, EveryOperationIsExact) { expect_exact_operations(); }
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
  // If false, packets arrive late or out of order. Ranks may then request packets again that are
  // not lost.
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
  // `environment`: variables of all ranks, one of which chooses the transport.
  explicit LinkMatrix(Environment environment);

  void SetUp() override;  // skips where there are no such links

  // Runs `scenario` with one process behind each link, all with the further variables `more`.
  // Returns the facts by rank. Prints the time that the run took and the share of lost packets.
  std::vector<Facts> run(const std::vector<std::string>& scenario, const Environment& more = {});

  // Expects exact results of every operation on blocks of 0 B to 64 KiB; on links without loss,
  // also of every element type.
  void expect_exact_operations();
  // Runs every operation that may lose data, and a Replica. Expects that all ranks have equal
  // results where they must.
  void expect_lossy_operations();
  // Expects averages with the ratio rule's error at this loss, and the same bits on all ranks.
  void expect_lossy_averages();

  EmulatedLinks& links() { return *links_; }

 private:
  void expect_loss_of_links(const std::vector<Facts>& all);

  Environment environment_;
  std::unique_ptr<EmulatedLinks> links_;
};

}  // namespace leeway::integration
