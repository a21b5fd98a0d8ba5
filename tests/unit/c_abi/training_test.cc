// Tests C functions for replicas, budgets, late work and Adam's moments.
#include <gmock/gmock.h>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::Each;
using testing::Group;
using testing::input_of;
using testing::output_of;

TEST(CReplica, AStepMovesAllParameters) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    std::vector<float> parameters(2000, 1.0f), gradient(2000, leeway_rank_of(rank) + 1.0f);
    leeway_replica_options options = LEEWAY_REPLICA_OPTIONS_INIT;
    options.delivery = LEEWAY_EXACT;
    leeway_replica* replica = nullptr;
    ASSERT_DONE(leeway_replica_create(rank, parameters.data(), 2000, &options, &replica));
    leeway_collective_options average = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    average.op = LEEWAY_AVG;
    EXPECT_DONE(leeway_replica_reduce_gradients(replica, gradient.data(), 2000, &average, nullptr));
    std::size_t offset = 0, count = 0;
    float* owned = nullptr;
    ASSERT_DONE(leeway_replica_owned(replica, &offset, &count, &owned));
    EXPECT_GT(count, 900u);
    for (std::size_t i = 0; i < count; ++i) owned[i] -= gradient[offset + i];
    EXPECT_DONE(leeway_replica_broadcast_parameters(replica, nullptr));
    EXPECT_THAT(parameters, Each(-0.5f));
    EXPECT_DONE(leeway_replica_synchronize(replica, nullptr));
    leeway_drift_report drift = LEEWAY_DRIFT_REPORT_INIT;
    EXPECT_DONE(leeway_replica_drift(replica, &drift));
    std::vector<std::uint64_t> bins(drift.age_bins);
    std::size_t bin_count = 99;
    EXPECT_DONE(leeway_replica_ages(replica, bins.data(), bins.size(), &bin_count));
    EXPECT_EQ(bin_count, drift.age_bins);
    leeway_replica_free(replica);
  });
}

TEST(CComputeBudget, CountsMicroBatches) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    std::int64_t now = 0;
    leeway_compute_budget_options options = LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT;
    options.micro_batches = 4;
    options.threshold = LEEWAY_THRESHOLD_FIXED;
    options.threshold_ns = 25;
    options.warm_up_steps = 0;
    options.window_steps = 0;
    options.clock_ns = [](void* user) { return *static_cast<std::int64_t*>(user); };
    options.user = &now;
    leeway_compute_budget* budget = nullptr;
    ASSERT_DONE(leeway_compute_budget_create(rank, &options, &budget));
    EXPECT_EQ(leeway_compute_budget_threshold_ns(budget), 25);
    int batches = 0;
    while (leeway_compute_budget_next_micro_batch(budget) != 0) {
      now += 10;
      ++batches;
    }
    EXPECT_EQ(batches, 3);
    EXPECT_EQ(leeway_compute_budget_weight(budget), 3.0);
    EXPECT_EQ(leeway_compute_budget_completed(budget), 3u);
    std::uint64_t first = 0, count = 0;
    EXPECT_DONE(leeway_compute_budget_dropped(budget, &first, &count));
    EXPECT_EQ(first, 3u);
    EXPECT_EQ(count, 1u);
    EXPECT_DONE(leeway_compute_budget_synchronize(budget));
    leeway_compute_counts local = LEEWAY_COMPUTE_COUNTS_INIT, global = LEEWAY_COMPUTE_COUNTS_INIT;
    leeway_compute_statistics all = LEEWAY_COMPUTE_STATISTICS_INIT;
    EXPECT_DONE(leeway_compute_budget_statistics(budget, &local, &global, &all));
    EXPECT_EQ(local.completed, 3u);
    EXPECT_EQ(global.completed, 6u);
    EXPECT_EQ(all.estimates, 0u);
    EXPECT_DONE(leeway_compute_budget_explain(budget));
    leeway_compute_budget_free(budget);
  });
}

TEST(CComputeBudget, OptionsOutOfRangeAreRefused) {
  Group group(1);
  leeway_compute_budget_options options = LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT;
  leeway_compute_budget* budget = nullptr;
  EXPECT_EQ(leeway_compute_budget_create(group.ranks[0], &options, &budget),
            LEEWAY_INVALID_ARGUMENT);
  options.micro_batches = 1;
  options.threshold = 3;
  EXPECT_FAILS(leeway_compute_budget_create(group.ranks[0], &options, &budget),
               LEEWAY_INVALID_ARGUMENT, "threshold 3");
}

TEST(CLateWork, SetsTheOptionsOfTheCall) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    std::vector<float> gradient(1000, 1.0f);
    leeway_late_work* late = nullptr;
    leeway_report* report = nullptr;
    ASSERT_DONE(leeway_late_work_create(gradient.size(), &late));
    ASSERT_DONE(leeway_report_create(&report));
    leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    options.op = LEEWAY_AVG;
    options.delivery = LEEWAY_BEST_EFFORT;
    ASSERT_DONE(leeway_late_work_add_to(late, gradient.data(), gradient.size(), &options));
    EXPECT_EQ(options.confirm_use, 1);
    EXPECT_DONE(leeway_all_reduce(rank, input_of(gradient), output_of(gradient), &options, report));
    EXPECT_DONE(leeway_late_work_keep(late, report));
    leeway_late_work_statistics statistics = LEEWAY_LATE_WORK_STATISTICS_INIT;
    EXPECT_DONE(leeway_late_work_statistics_of(late, &statistics));
    EXPECT_EQ(statistics.carried, 0u);
    EXPECT_EQ(leeway_late_work_add_to(late, gradient.data(), 5, &options), LEEWAY_INVALID_ARGUMENT);
    options.size = 64;
    EXPECT_FAILS(leeway_late_work_add_to(late, gradient.data(), gradient.size(), &options),
                 LEEWAY_INVALID_ARGUMENT, "too short");
    leeway_report_free(report);
    leeway_late_work_free(late);
  });
}

TEST(CAdamState, MomentsComeBack) {
  const std::vector<float> moment = {0.5f, -0.25f, 0.0f, 1.0f};
  std::vector<float> decoded(4);
  std::vector<std::uint8_t> codes(4);
  float scale = 0.0f;
  ASSERT_DONE(leeway_encode_adam_first(moment.data(), 4, nullptr, codes.data(), &scale));
  ASSERT_DONE(leeway_decode_adam_first(codes.data(), 4, scale, decoded.data()));
  EXPECT_EQ(decoded, moment);
  ASSERT_DONE(leeway_encode_adam_second(moment.data(), 4, nullptr, codes.data(), &scale));
  ASSERT_DONE(leeway_decode_adam_second(codes.data(), 4, scale, decoded.data()));
  EXPECT_EQ(decoded, moment);
  leeway_adam_state_options options = LEEWAY_ADAM_STATE_OPTIONS_INIT;
  options.first_max = 100.0;
  EXPECT_EQ(leeway_encode_adam_first(moment.data(), 4, &options, codes.data(), &scale),
            LEEWAY_INVALID_ARGUMENT);
  EXPECT_EQ(leeway_decode_adam_first(codes.data(), 4, -1.0f, decoded.data()),
            LEEWAY_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace leeway::c_abi
