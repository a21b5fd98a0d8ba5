#include "scenario/validate.h"

#include "unit/sim_scenario/scenario_text.h"

namespace leeway::sim::scenario {
namespace {

TEST(Validate, RanksOfFaultsMustExist) {
  EXPECT_EQ(error_of("ranks: 4\nslow { rank: 4 factor: 2 }"),
            "a.txtpb:2:8: slow[0].rank is 4; allowed is 0 to 3");
  EXPECT_EQ(error_of("pause { rank: 9 for_ms: 2 }"),
            "a.txtpb:1:9: pause[0].rank is 9; allowed is 0 to 3");
  EXPECT_EQ(error_of("crash { rank: 1 } crash { rank: 4 }"),
            "a.txtpb:1:27: crash[1].rank is 4; allowed is 0 to 3");
  EXPECT_EQ(error_of("cross_traffic { from: 0 to: 4 cubic {} }"),
            "a.txtpb:1:25: cross_traffic[0].to is 4; allowed is 0 to 3");
}

TEST(Validate, RootsAndThoseWhoLeaveMustExist) {
  EXPECT_EQ(error_of("operation { root: 4 }"),
            "a.txtpb:1:13: operation.root is 4; allowed is 0 to 3");
  EXPECT_EQ(error_of("leave { ranks: \"7\" }"),
            "a.txtpb:1:9: leave[0].ranks is wrong: \"7\" leaves the ranks there are, 0 to 3");
}

TEST(Validate, SelectorsMustChooseRanks) {
  EXPECT_EQ(error_of("link { from: \"0-4\" }"),
            "a.txtpb:1:8: link[0].from is wrong: \"0-4\" leaves the ranks there are, 0 to 3");
  EXPECT_EQ(error_of("group { name: \"east\" ranks: \"0\" }\nlink { to: \"eats\" }"),
            "a.txtpb:2:8: link[0].to is wrong: \"eats\" is no group; did you mean \"east\"?");
  EXPECT_EQ(error_of("partition { between: \"0\" and: \"x\" }"),
            "a.txtpb:1:26: partition[0].and is wrong: \"x\" is no group; none are defined");
  EXPECT_EQ(error_of("compute { ranks: \"7\" constant_ms: 1 }"),
            "a.txtpb:1:11: compute[0].ranks is wrong: \"7\" leaves the ranks there are, 0 to 3");
}

TEST(Validate, BetweenComesWithAndAndWithoutFrom) {
  EXPECT_EQ(error_of("link { between: \"0\" }"),
            "a.txtpb:1:1: link[0].and is missing; between and and come together");
  EXPECT_EQ(error_of("partition { and: \"0\" }"),
            "a.txtpb:1:1: partition[0].between is missing; between and and come together");
  EXPECT_EQ(error_of("link { between: \"0\" and: \"1\" to: \"2\" }"),
            "a.txtpb:1:30: link[0].to cannot be combined with between");
}

TEST(Validate, GroupsHaveNamesOfTheirOwn) {
  EXPECT_EQ(
      error_of("group { name: \"7\" ranks: \"0\" }"),
      "a.txtpb:1:9: group[0].name is \"7\"; allowed are a letter, then letters, digits and _");
  EXPECT_EQ(error_of("group { name: \"a\" ranks: \"0\" } group { name: \"a\" ranks: \"1\" }"),
            "a.txtpb:1:40: group[1].name is \"a\", as is group[0]");
  EXPECT_EQ(error_of("group { name: \"a\" ranks: \"a\" }"),
            "a.txtpb:1:19: group[0].ranks is wrong: \"a\" is no rank and no range");
}

TEST(Validate, TheCoreHasALimitOfItsOwn) {
  EXPECT_EQ(error_of("ranks: 1025"),
            "a.txtpb:1:1: ranks is 1025; allowed with endpoint core is 1 to 1024; endpoint "
            "tcp_ring takes more");
  EXPECT_EQ(parsed("ranks: 1024").ranks(), 1024u);
  EXPECT_EQ(parsed("ranks: 16384 endpoint: tcp_ring").ranks(), 16384u);
}

TEST(Validate, WhatNeedsValuesIsRefusedWithoutContents) {
  EXPECT_FALSE(parsed("contents: false operation { codec: \"nvfp4\" }").contents());
  EXPECT_EQ(error_of("contents: false endpoint: tcp_ring"),
            "a.txtpb:1:1: contents is false; that belongs to endpoint core only");
  EXPECT_EQ(error_of("contents: false workload { quadratic {} }"),
            "a.txtpb:1:17: workload needs values; contents is false");
  EXPECT_EQ(error_of("contents: false operation { kind: replica_step }"),
            "a.txtpb:1:29: operation.kind needs values; contents is false");
  EXPECT_EQ(error_of("contents: false operation { error_feedback: true }"),
            "a.txtpb:1:29: operation.error_feedback needs values; contents is false");
  EXPECT_EQ(
      error_of("contents: false operation { estimator: augmented control_variate: previous }"),
      "a.txtpb:1:50: operation.control_variate needs values; contents is false");
  EXPECT_EQ(error_of("contents: false operation { codec: \"automatic\" }"),
            "a.txtpb:1:29: operation.codec needs values; contents is false");
}

TEST(Validate, OperationsHaveTextsTheLibraryReads) {
  EXPECT_EQ(error_of("operation { bytes: 6 }"),
            "a.txtpb:1:13: operation.bytes is 6; allowed are multiples of 4");
  EXPECT_EQ(error_of("operation { codec: \"nvfp5\" }").substr(0, 49),
            "a.txtpb:1:13: operation.codec is \"nvfp5\": unknown");
  EXPECT_EQ(error_of("operation { replica { codec: \"luq:draws=9\" } }").substr(0, 53),
            "a.txtpb:1:23: operation.replica.codec is \"luq:draws=9");
  EXPECT_EQ(error_of("operation { inject: \"loss=2\" }").substr(0, 41),
            "a.txtpb:1:13: operation.inject is wrong: ");
}

TEST(Validate, SettingsThatWouldDoNothingAreRefused) {
  EXPECT_EQ(error_of("operation { delivery { loss_max: 0.1 } }"),
            "a.txtpb:1:24: operation.delivery.loss_max belongs to kind bounded only");
  EXPECT_EQ(error_of("operation { control_variate: previous }"),
            "a.txtpb:1:13: operation.control_variate belongs to estimator augmented only");
  EXPECT_EQ(error_of("workload {}"),
            "a.txtpb:1:1: workload is empty; say which, such as quadratic {}");
  EXPECT_EQ(error_of("topology {}"), "a.txtpb:1:1: topology is empty; say which, such as star {}");
  EXPECT_EQ(error_of("checkers { skip: \"i22\" }"),
            "a.txtpb:1:12: checkers.skip[0] is \"i22\"; allowed are i1 to i21");
  EXPECT_EQ(error_of("endpoint: tcp_ring multicast {}"),
            "a.txtpb:1:20: multicast belongs to endpoint core only");
  EXPECT_EQ(error_of("endpoint: tcp_ring sealing {}"),
            "a.txtpb:1:20: sealing belongs to endpoint core only");
  EXPECT_EQ(error_of("sealing {} multicast {}"), "a.txtpb:1:1: sealing knows no multicast");
  EXPECT_EQ(error_of("contents: false sealing {}"),
            "a.txtpb:1:17: sealing needs values; contents is false");
  EXPECT_EQ(error_of("endpoint: tcp_ring operation { kind: barrier }"),
            "a.txtpb:1:32: operation.kind needs endpoint core");
  EXPECT_EQ(error_of("link { tier: uplink }"),
            "a.txtpb:1:8: link[0].tier is uplink; this topology has no switches, only path");
  EXPECT_EQ(error_of("topology { star {} } link { tier: fabric }"),
            "a.txtpb:1:29: link[0].tier is fabric; a star has one switch, so uplink and downlink "
            "only");
}

TEST(Validate, MessagesComeFirstWhereThereIsACallBehindThem) {
  EXPECT_EQ(error_of("endpoint: tcp_ring operation { messages_first: 1 }"),
            "a.txtpb:1:32: operation.messages_first needs endpoint core");
  EXPECT_EQ(error_of("contents: false operation { messages_first: 1 }"),
            "a.txtpb:1:29: operation.messages_first needs values; contents is false");
  EXPECT_EQ(error_of("operation { kind: messages messages_first: 1 }"),
            "a.txtpb:1:28: operation.messages_first belongs to kinds other than messages only");
  EXPECT_EQ(error_of("communicator { operation { messages_first: 1 } }"),
            "a.txtpb:1:28: communicator[0].operation.messages_first belongs to the first one only");
  EXPECT_TRUE(parse_text("operation { messages_first: 1 }", "a.txtpb").ok());
}

TEST(Validate, LanesAreOfWhatTheLibraryCuts) {
  EXPECT_EQ(error_of("ranks: 4 operation { lanes: 9 }"),
            "a.txtpb:1:22: operation.lanes is 9; allowed is 1 to 8");
  EXPECT_EQ(error_of("ranks: 4 operation { slice_bytes: 4096 }"),
            "a.txtpb:1:22: operation.slice_bytes needs lanes");
  EXPECT_EQ(error_of("ranks: 4 operation { kind: broadcast lanes: 2 }"),
            "a.txtpb:1:38: operation.lanes belongs to kinds all_reduce and all_gather only");
  EXPECT_EQ(error_of("ranks: 4 operation { lanes: 2 owner_weights: true }"),
            "a.txtpb:1:31: operation.owner_weights needs confirm_use");
  EXPECT_EQ(error_of("ranks: 4 operation { lanes: 2 site_ranks: 2 }"),
            "a.txtpb:1:22: operation.lanes does not go with site_ranks");
  EXPECT_EQ(error_of("ranks: 4 multicast {} operation { lanes: 2 }"),
            "a.txtpb:1:35: operation.lanes does not go with multicast");
  EXPECT_EQ(error_of("ranks: 4 sealing {} operation { lanes: 2 }"),
            "a.txtpb:1:33: operation.lanes does not go with sealing");
  EXPECT_EQ(error_of("ranks: 4 leave {} operation { lanes: 2 }"),
            "a.txtpb:1:31: operation.lanes knows no leave");
  EXPECT_EQ(error_of("ranks: 4 contents: false operation { lanes: 2 }"),
            "a.txtpb:1:38: operation.lanes needs values; contents is false");
  EXPECT_EQ(error_of("ranks: 4 endpoint: tcp_ring operation { lanes: 2 }"),
            "a.txtpb:1:41: operation.lanes needs endpoint core");
}

TEST(Validate, SitesHaveEquallyManyRanks) {
  EXPECT_EQ(error_of("ranks: 6 operation { site_ranks: 4 }"),
            "a.txtpb:1:22: operation.site_ranks is 4; allowed is 2 and above, of which ranks, 6, "
            "is a multiple of two and more");
  EXPECT_EQ(error_of("ranks: 6 operation { site_ranks: 6 }").substr(0, 45),
            "a.txtpb:1:22: operation.site_ranks is 6; allo");
  EXPECT_EQ(error_of("ranks: 6 operation { site_ranks: 1 }").substr(0, 45),
            "a.txtpb:1:22: operation.site_ranks is 1; allo");
  EXPECT_EQ(error_of("ranks: 6 operation { site_piece_bytes: 4096 }"),
            "a.txtpb:1:22: operation.site_piece_bytes needs site_ranks");
  EXPECT_EQ(error_of("ranks: 6 operation { kind: broadcast site_ranks: 3 }"),
            "a.txtpb:1:38: operation.site_ranks belongs to kinds all_reduce, reduce_scatter and "
            "all_gather only");
  EXPECT_EQ(error_of("ranks: 6 operation { site_ranks: 3 owner_weights: true }"),
            "a.txtpb:1:36: operation.owner_weights needs confirm_use");
  EXPECT_EQ(error_of("ranks: 6 leave {} operation { site_ranks: 3 }"),
            "a.txtpb:1:31: operation.site_ranks knows no leave");
  EXPECT_EQ(error_of("ranks: 6 contents: false operation { site_ranks: 3 }"),
            "a.txtpb:1:38: operation.site_ranks needs values; contents is false");
  EXPECT_EQ(error_of("ranks: 6 endpoint: tcp_ring operation { site_ranks: 3 }"),
            "a.txtpb:1:41: operation.site_ranks needs endpoint core");
  EXPECT_EQ(error_of("ranks: 6 communicator { operation { site_ranks: 3 } }"),
            "a.txtpb:1:37: communicator[0].operation.site_ranks belongs to the first one only");
  EXPECT_TRUE(
      parse_text("ranks: 6 operation { site_ranks: 3 site_piece_bytes: 4096 }", "a.txtpb").ok());
}

TEST(Validate, LinkSettingsFitEachOther) {
  EXPECT_EQ(error_of("link { queue { bytes: 1000 ecn_at: 1001 } }"),
            "a.txtpb:1:28: link[0].queue.ecn_at is 1001; allowed is 1 to the queue's bytes, 1000");
  EXPECT_EQ(error_of("link { delay_ms { uniform { from: 3 to: 2 } } }"),
            "a.txtpb:1:37: link[0].delay_ms.uniform.to is 2; allowed is from, 3, and above");
  EXPECT_EQ(error_of("link { delay_ms {} }").substr(0, 42),
            "a.txtpb:1:8: link[0].delay_ms has no kind;");
  EXPECT_EQ(error_of("link { queue { ecn_at: 9 red { min_bytes: 1 max_bytes: 2 } } }"),
            "a.txtpb:1:26: link[0].queue.red cannot be combined with ecn_at");
  EXPECT_EQ(error_of("link { queue { red { min_bytes: 3 max_bytes: 2 } } }"),
            "a.txtpb:1:35: link[0].queue.red.max_bytes is 2; allowed is min_bytes, 3, and above");
}

TEST(Validate, TrimmingDoesNotGoWithCodelNorDeliveriesWithARate) {
  EXPECT_EQ(error_of("link { queue { trim {} codel {} } }"),
            "a.txtpb:1:16: link[0].queue.trim cannot be combined with codel");
  EXPECT_EQ(error_of("link { rate_mbps: 1 deliveries: 'a' }"),
            "a.txtpb:1:21: link[0].deliveries cannot be combined with rate_mbps");
}

TEST(Validate, LeavesAndSpinesHaveALimitTogether) {
  EXPECT_EQ(error_of("ranks: 16384 endpoint: tcp_ring"
                     " topology { leaf_spine { hosts_per_leaf: 1 spines: 65 } }"),
            "a.txtpb:1:75: topology.leaf_spine.spines is 65; allowed with 16384 leaves is 1 to 64");
  EXPECT_EQ(
      parsed("ranks: 1000 topology { leaf_spine { hosts_per_leaf: 1 spines: 1024 } }").ranks(),
      1000u);
}

TEST(Validate, RulesOfARingChooseNeighbours) {
  EXPECT_EQ(error_of("topology { ring {} } link { from: '0' to: '2' }"),
            "a.txtpb:1:39: link[0].to chooses no neighbour of the rule's other ranks; in a ring "
            "only neighbours have links");
  EXPECT_EQ(error_of("topology { ring {} } link { between: '1' and: '3' }"),
            "a.txtpb:1:42: link[0].and chooses no neighbour of the rule's other ranks; in a ring "
            "only neighbours have links");
  EXPECT_EQ(parsed("topology { ring {} } link { from: '0' to: '3' } link {}").link_size(), 2);
}

TEST(Validate, LossModelsArePossible) {
  EXPECT_EQ(error_of("link { loss { four_state { p13: 0.75 p14: 0.5 } } }"),
            "a.txtpb:1:38: link[0].loss.four_state.p14 is 0.5; allowed is 0 to 0.25, what the "
            "state's other exit leaves");
  EXPECT_EQ(error_of("link { loss { four_state { p13: 0.1 p31: 0.75 p32: 0.5 } } }"),
            "a.txtpb:1:47: link[0].loss.four_state.p32 is 0.5; allowed is 0 to 0.25, what the "
            "state's other exit leaves");
  EXPECT_EQ(error_of("link { loss { list { index: [1, 4, 4] } } }"),
            "a.txtpb:1:22: link[0].loss.list.index[2] is 4; the numbers of a list rise");
  EXPECT_EQ(error_of("link { loss { window { to_ms: 9 } window { from_ms: 5 to_ms: 10 } } }"),
            "a.txtpb:1:44: link[0].loss.window[1].from_ms is 5; allowed is the end of the window "
            "before, 9, and above");
  EXPECT_EQ(error_of("link { loss { window { from_ms: 5 to_ms: 5 } } }"),
            "a.txtpb:1:35: link[0].loss.window[0].to_ms is 5; allowed is above from_ms, 5");
}

TEST(Validate, TopologiesFitTheRanks) {
  EXPECT_EQ(error_of("topology { pair {} }"),
            "a.txtpb:1:12: topology.pair has 2 ranks, the scenario 4");
  EXPECT_EQ(error_of("topology { fat_tree { k: 3 } }"),
            "a.txtpb:1:23: topology.fat_tree.k is 3; allowed are even numbers");
  EXPECT_EQ(error_of("ranks: 17 topology { fat_tree { k: 4 } }"),
            "a.txtpb:1:33: topology.fat_tree.k is 4, which is 16 hosts for 17 ranks");
  EXPECT_EQ(parsed("ranks: 16 topology { fat_tree { k: 4 } }").ranks(), 16u);
}

std::string regions(const std::string& us, const std::string& rtts) {
  return "group { name: \"eu\" ranks: \"0-1\" } group { name: \"us\" ranks: \"" + us +
         "\" }\ntopology { regions { names: [\"eu\", \"us\"] rtt_ms: [" + rtts + "] } }";
}

TEST(Validate, RegionsHoldEveryRankOnce) {
  EXPECT_EQ(error_of(regions("2-3", "0, 90, 90, 0")), "accepted");
  EXPECT_EQ(error_of(regions("3", "0, 90, 90, 0")),
            "a.txtpb:2:22: topology.regions.names put rank 2 into 0 regions; allowed is one");
  EXPECT_EQ(error_of(regions("1-3", "0, 90, 90, 0")),
            "a.txtpb:2:22: topology.regions.names put rank 1 into 2 regions; allowed is one");
}

TEST(Validate, RoundTripTimesAreASymmetricMatrix) {
  EXPECT_EQ(error_of(regions("2-3", "0, 90, 0")),
            "a.txtpb:2:42: topology.regions.rtt_ms has 3 numbers; 2 regions need 4");
  EXPECT_EQ(error_of(regions("2-3", "0, 90, 80, 0")),
            "a.txtpb:2:42: topology.regions.rtt_ms is not symmetric: from eu to us 90, back 80");
}

std::string drop_compute(const std::string& more) {
  return "compute { drop_compute { micro_batch_ms: 10 " + more + " } }";
}

TEST(Validate, ThresholdsOfComputeFitItsMicroBatches) {
  EXPECT_EQ(error_of(drop_compute("threshold_ms: 10")), "accepted");
  EXPECT_EQ(error_of(drop_compute("threshold_ms: 9.5")),
            "a.txtpb:1:45: compute[0].drop_compute.threshold_ms is 9.5; allowed is "
            "micro_batch_ms, 10, and above");
  EXPECT_EQ(error_of(drop_compute("threshold_ms: -3")),
            "a.txtpb:1:45: compute[0].drop_compute.threshold_ms is -3; allowed is above 0, up to "
            "1000000000");
  EXPECT_EQ(error_of(drop_compute("micro_batches_min: 13")),
            "a.txtpb:1:45: compute[0].drop_compute.micro_batches_min is 13; allowed is 0 to "
            "micro_batches, 12");
  EXPECT_EQ(error_of(drop_compute("forward_share: 1.5")),
            "a.txtpb:1:45: compute[0].drop_compute.forward_share is 1.5; allowed is 0 to 1");
  EXPECT_EQ(error_of(drop_compute("normalisation: maximum")),
            "a.txtpb:1:60: normalisation cannot be \"maximum\"; valid are realised_weight, "
            "fixed_maximum");
}

TEST(Validate, AnAutomaticThresholdIsOfAllRanksAndInTime) {
  EXPECT_EQ(error_of("rounds: 46 " + drop_compute("threshold_auto {}")), "accepted");
  EXPECT_EQ(error_of("rounds: 45 " + drop_compute("threshold_auto {}")),
            "a.txtpb:1:56: compute[0].drop_compute.threshold_auto finds a threshold for round 45; "
            "allowed is below rounds, which is 45");
  EXPECT_EQ(error_of(drop_compute("threshold_ms: 50 threshold_auto {}")),
            "a.txtpb:1:62: compute[0].drop_compute.threshold_auto cannot be combined with "
            "threshold_ms");
  EXPECT_EQ(error_of(drop_compute("threshold_auto { window_rounds: 0 }")),
            "a.txtpb:1:62: compute[0].drop_compute.threshold_auto.window_rounds is 0; allowed is "
            "1 to 256");
  EXPECT_EQ(error_of("rounds: 99 " + drop_compute("threshold_auto { every_rounds: 44 }")),
            "a.txtpb:1:73: compute[0].drop_compute.threshold_auto.every_rounds is 44; allowed are "
            "0 and window_rounds and adopt_after_rounds together, 45, and above");
  const std::string needs =
      "compute[0].drop_compute.threshold_auto needs one compute entry, of all ranks";
  EXPECT_EQ(error_of("rounds: 99 " + drop_compute("threshold_auto {}") +
                     " compute { ranks: '1' constant_ms: 3 }"),
            "a.txtpb:1:56: " + needs);
  EXPECT_EQ(error_of("rounds: 99 compute { ranks: '0-2' drop_compute { micro_batch_ms: 10 "
                     "threshold_auto {} } }"),
            "a.txtpb:1:69: " + needs);
}

TEST(Validate, NamesFieldsOnlyWithoutAFile) {
  Scenario scenario;
  scenario.set_ranks(0);
  EXPECT_EQ(validate(scenario).text(), "ranks is 0; allowed is 1 to 16384");
}

}  // namespace
}  // namespace leeway::sim::scenario
