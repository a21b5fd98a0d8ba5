#include "swarm/draw.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "scenario/parse.h"
#include "scenario/validate.h"
#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Link;
using scenario::Operation;
using scenario::Scenario;

constexpr std::uint64_t kSeeds = 2000;

std::string text_of(const Scenario& scenario) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(scenario, &text);
  return text;
}

TEST(Draw, EveryScenarioIsValidAndPrintsAsItself) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario drawn = draw_scenario(seed);
    const Status valid = scenario::validate(drawn);
    ASSERT_TRUE(valid.ok()) << "seed " << seed << ": " << valid.c_str() << "\n" << text_of(drawn);
    const auto read = scenario::parse_text(text_of(drawn), "drawn.txtpb");
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status().c_str();
    ASSERT_EQ(read->SerializeAsString(), drawn.SerializeAsString()) << "seed " << seed;
  }
}

TEST(Draw, TheSameSeedIsTheSameScenarioAndOthersAreNot) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string text = text_of(draw_scenario(seed));
    EXPECT_EQ(text, text_of(draw_scenario(seed)));
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), kSeeds);
}

TEST(Draw, StaysSmall) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario drawn = draw_scenario(seed);
    EXPECT_GE(drawn.ranks(), 2u);
    EXPECT_TRUE(drawn.ranks() <= 16 || drawn.ranks() == 64);
    EXPECT_GE(drawn.rounds(), 6u);
    EXPECT_LE(drawn.rounds(), 12u);
    if (drawn.has_calm_from_round()) {
      EXPECT_EQ(drawn.calm_from_round() + kCalmRounds, drawn.rounds());
    }
    EXPECT_GE(drawn.operation().bytes(), 1024u);
    EXPECT_LE(drawn.operation().bytes(), drawn.ranks() > 6 ? 65536u : 1u << 20);
  }
}

// Counts the features of a link by name.
void count_link(const Link& link, std::map<std::string, int>& seen) {
  seen["random"] += link.loss().has_random();
  seen["bursts"] += link.loss().has_bursts();
  seen["gilbert_elliott"] += link.loss().has_gilbert_elliott();
  seen["four_state"] += link.loss().has_four_state();
  seen["every"] += link.loss().has_every();
  seen["window"] += link.loss().window_size() > 0;
  seen["shared_fate"] += link.shared_fate();
  seen["duplicate"] += link.has_duplicate();
  seen["reorder"] += link.has_reorder();
  seen["corrupt"] += link.has_corrupt();
  seen["queue"] += link.has_queue();
  seen["fixed delay"] += link.delay_ms().has_fixed();
  seen["jitter"] += link.has_delay_ms() && !link.delay_ms().has_fixed();
}

void count_operation(const Operation& operation, std::map<std::string, int>& seen) {
  ++seen["kind " + std::to_string(operation.kind())];
  ++seen["estimator " + std::to_string(operation.estimator())];
  ++seen["class " + std::to_string(operation.delivery().kind())];
  ++seen["spread " + std::to_string(operation.spread())];
  seen["codec"] += operation.codec() != "fp32";
  seen["automatic"] += operation.codec() == "automatic";
  seen["inject"] += operation.has_inject();
  seen["window_bytes"] += operation.has_window_bytes();
  seen["error_feedback"] += operation.error_feedback();
  seen["in order"] += !operation.permute();
  seen["control_variate"] += operation.has_control_variate();
  seen["root"] += operation.root() != 0;
  seen["confirm_use"] += operation.confirm_use();
  seen["owner_weights"] += operation.owner_weights();
  seen["non_finite"] += operation.non_finite() > 0;
  seen["uneven"] += operation.uneven();
  seen["tags"] += operation.tags() > 1;
  seen["any_source"] += operation.any_source();
  seen["exchange"] += operation.exchange();
  seen["sites"] += operation.site_ranks() > 0;
  seen["lanes"] += operation.lanes() > 1;
  seen["site pieces"] += operation.has_site_piece_bytes();
  seen["messages first"] += operation.messages_first() > 0;
  seen["many messages"] += operation.messages_max() > 16;
  seen["short deadline"] += operation.delivery().deadline_ms() < 1000;
  seen["long flow"] += operation.bytes() > 65536;
}

// Returns true if the tensor has fewer float32 datagrams than ranks. A header takes 56 bytes of
// each datagram.
bool has_few_owners(const Scenario& scenario) {
  const Operation& operation = scenario.operation();
  return operation.kind() == Operation::all_reduce &&
         operation.bytes() < scenario.ranks() * (operation.datagram_bytes() - 56);
}

TEST(Draw, EveryKindOfOperationAndFaultComes) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario drawn = draw_scenario(seed);
    count_operation(drawn.operation(), seen);
    for (const Link& link : drawn.link()) count_link(link, seen);
    ++seen["topology " + std::to_string(drawn.topology().kind_case())];
    seen["many ranks"] += drawn.ranks() == 64;
    seen["few owners"] += has_few_owners(drawn);
    seen["partition both ways"] += drawn.partition_size() > 0 && drawn.partition(0).has_between();
    seen["partition one way"] += drawn.partition_size() > 0 && !drawn.partition(0).has_between();
    seen["pause"] += drawn.pause_size() > 0;
    seen["given up"] += may_be_given_up(drawn);
    seen["crash"] += drawn.crash_size() > 0;
    seen["slow"] += drawn.slow_size() > 0;
    seen["multicast"] += drawn.has_multicast();
    seen["multicast from some"] += drawn.multicast().from() != "*";
    seen["multicast to some"] += drawn.multicast().to() != "*";
    seen["multicast ends"] += drawn.multicast().has_until_round();
    seen["leave"] += drawn.leave_size() > 0;
    seen["leave at two times"] += drawn.leave_size() > 1;
    seen["no calm"] += !drawn.has_calm_from_round();
    for (const scenario::Leave& leave : drawn.leave()) {
      seen["leave before the end"] += leave.has_from_round();
      seen["leave at once"] += leave.at_once();
    }
    seen["liveness"] += drawn.checkers().skip(0) != "i9";
  }
  EXPECT_EQ(seen.size(), 13u + 11 + 6 + 3 + 3 + 22 + 5 + 7 + 11);
  for (const auto& [name, count] : seen) EXPECT_GE(count, 3) << name;
  EXPECT_GE(seen["few owners"], static_cast<int>(kSeeds / 20));
  EXPECT_GE(seen["liveness"], static_cast<int>(kSeeds / 4));
}

// If all ranks are behind symmetric translators, no rank can relay. Shrinking a failing scenario
// must not lead there.
TEST(Draw, RecoveryIsPromisedWhereSomebodyRelays) {
  Scenario scenario;
  scenario.set_ranks(3);
  scenario.set_rounds(9);
  scenario.set_calm_from_round(2);
  scenario.mutable_operation()->mutable_delivery()->set_kind(scenario::Delivery::exact);
  scenario.mutable_operation()->mutable_delivery()->set_deadline_ms(60'000);
  scenario::Translator& translator = *scenario.add_translator();
  translator.set_symmetric(true);
  translator.set_ranks("1,2");
  EXPECT_TRUE(promises_recovery(scenario));
  translator.clear_ranks();
  EXPECT_FALSE(promises_recovery(scenario));
}

// A short queue drops most of a burst, and the next burst begins a time-out later. So data many
// times as long as the queue need a longer deadline, and through a relay twice as long.
TEST(Draw, RecoveryIsPromisedWhereQueuesTakeEnough) {
  Scenario scenario;
  scenario.set_ranks(3);
  scenario.set_rounds(9);
  scenario.set_calm_from_round(2);
  scenario.mutable_operation()->set_bytes(65536);
  scenario.mutable_operation()->mutable_delivery()->set_kind(scenario::Delivery::exact);
  scenario.mutable_operation()->mutable_delivery()->set_deadline_ms(60'000);
  Link& link = *scenario.add_link();
  link.set_rate_mbps(571);
  link.mutable_delay_ms()->set_fixed(80);
  link.mutable_queue()->set_bytes(2048);
  link.mutable_queue()->mutable_red()->set_min_bytes(300);
  link.mutable_queue()->mutable_red()->set_max_bytes(600);
  EXPECT_TRUE(promises_recovery(scenario));
  scenario.add_translator()->set_symmetric(true);
  scenario.mutable_translator(0)->set_ranks("1,2");
  EXPECT_FALSE(promises_recovery(scenario));
  link.mutable_queue()->clear_red();
  EXPECT_TRUE(promises_recovery(scenario));
  link.mutable_queue()->set_bytes(600);
  EXPECT_FALSE(promises_recovery(scenario));
  scenario.mutable_congestion()->set_control(scenario::Congestion::wan);
  EXPECT_TRUE(promises_recovery(scenario));
}

// Processes may join later than their peers' time-out, but in time for a call that waits for them.
TEST(Draw, ProcessesJoinLate) {
  int late = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario drawn = draw_scenario(seed);
    if (drawn.communicator_size() == 0 || !drawn.operation().has_peer_timeout_ms()) continue;
    EXPECT_LE(drawn.communicator(0).open_ms(), 2500.0);
    late += drawn.communicator(0).open_ms() > drawn.operation().peer_timeout_ms();
  }
  EXPECT_GE(late, 10);
}

}  // namespace
}  // namespace leeway::sim::swarm
