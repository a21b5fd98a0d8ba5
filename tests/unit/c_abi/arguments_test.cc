// Each wrong argument must give a clear error, and nothing may be sent.
#include <gmock/gmock.h>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using testing::Group;
using ::testing::HasSubstr;

// Calls all_reduce of one rank with options that `change` has spoilt.
leeway_status reduce_with(const std::function<void(leeway_collective_options&)>& change) {
  Group group(1);
  std::vector<float> values(10, 1.0f);
  leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  change(options);
  return leeway_all_reduce(group.ranks[0], testing::input_of(values), testing::output_of(values),
                           &options, nullptr);
}

TEST(CArguments, NumbersThatNameNothingAreRefused) {
  EXPECT_FAILS(reduce_with([](auto& options) { options.op = 99; }), LEEWAY_INVALID_ARGUMENT,
               "op 99");
  EXPECT_FAILS(reduce_with([](auto& options) { options.op = -1; }), LEEWAY_INVALID_ARGUMENT,
               "op -1");
  EXPECT_FAILS(reduce_with([](auto& options) { options.delivery = 3; }), LEEWAY_INVALID_ARGUMENT,
               "delivery 3");
  EXPECT_FAILS(reduce_with([](auto& options) { options.spread = 3; }), LEEWAY_INVALID_ARGUMENT,
               "spread 3");
  EXPECT_FAILS(reduce_with([](auto& options) { options.estimator = 6; }), LEEWAY_INVALID_ARGUMENT,
               "estimator 6");
  leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
  codec.codec = 19;
  EXPECT_FAILS(reduce_with([&](auto& options) { options.codec = &codec; }), LEEWAY_INVALID_ARGUMENT,
               "codec 19");
  const leeway_scalar factor = {LEEWAY_BF16, 0, {0.0}};
  EXPECT_FAILS(reduce_with([&](auto& options) { options.factor = &factor; }),
               LEEWAY_INVALID_ARGUMENT, "leeway_scalar.type");
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.transport = 8;
  leeway_communicator* communicator = nullptr;
  EXPECT_FAILS(leeway_create(&options, &communicator), LEEWAY_INVALID_ARGUMENT, "transport 8");
  options = LEEWAY_OPTIONS_INIT;
  options.rank = -2;
  EXPECT_FAILS(leeway_create(&options, &communicator), LEEWAY_INVALID_ARGUMENT, "rank is -2");
}

TEST(CArguments, ArraysThatAreMissingAreRefused) {
  EXPECT_FAILS(reduce_with([](auto& options) { options.owner_weight_count = 1; }),
               LEEWAY_INVALID_ARGUMENT, "owner_weights is NULL");
  Group group(1);
  leeway_communicator* const rank = group.ranks[0];
  std::vector<float> values(4);
  const leeway_const_tensor nothing = {nullptr, 4, LEEWAY_F32};
  EXPECT_FAILS(leeway_all_reduce(rank, nothing, testing::output_of(values), nullptr, nullptr),
               LEEWAY_INVALID_ARGUMENT, "input.data is NULL");
  EXPECT_FAILS(leeway_broadcast(rank, {values.data(), 4, 99}, 0, nullptr, nullptr),
               LEEWAY_INVALID_ARGUMENT, "data type 99");
  EXPECT_FAILS(leeway_all_gather_uneven(rank, testing::input_of(values), testing::output_of(values),
                                        {nullptr, nullptr}, nullptr, nullptr),
               LEEWAY_INVALID_ARGUMENT, "leeway_blocks.counts");
  EXPECT_FAILS(leeway_exchange(rank, nullptr, 1, nullptr, nullptr), LEEWAY_INVALID_ARGUMENT,
               "messages is NULL");
  leeway_message message = LEEWAY_MESSAGE_INIT;
  message.kind = 2;
  EXPECT_FAILS(leeway_exchange(rank, &message, 1, nullptr, nullptr), LEEWAY_INVALID_ARGUMENT,
               "kind 2");
}

TEST(CArguments, BytesThatOverflowAreRefused) {
  Group group(2);
  float value = 0.0f;
  EXPECT_EQ(leeway_all_reduce(group.ranks[0], {&value, SIZE_MAX / 2, LEEWAY_F32},
                              {&value, SIZE_MAX / 2, LEEWAY_F32}, nullptr, nullptr),
            LEEWAY_INVALID_ARGUMENT);
}

TEST(CArguments, NullHandlesAreErrorsThatNameFunctionAndArgument) {
  std::vector<float> values(4);
  const leeway_const_tensor input = testing::input_of(values);
  const leeway_tensor output = testing::output_of(values);
  EXPECT_FAILS(leeway_all_reduce(nullptr, input, output, nullptr, nullptr), LEEWAY_INVALID_ARGUMENT,
               "leeway_all_reduce: communicator is NULL");
  leeway_work* work = nullptr;
  EXPECT_FAILS(leeway_recv_async(nullptr, output, 0, nullptr, &work), LEEWAY_INVALID_ARGUMENT,
               "leeway_recv_async: communicator is NULL");
  Group group(1);
  EXPECT_FAILS(leeway_all_reduce_async(group.ranks[0], input, output, nullptr, nullptr),
               LEEWAY_INVALID_ARGUMENT, "work is NULL");
  EXPECT_FAILS(leeway_create(nullptr, nullptr), LEEWAY_INVALID_ARGUMENT, "communicator is NULL");
  EXPECT_FAILS(leeway_work_wait(nullptr, nullptr), LEEWAY_INVALID_ARGUMENT, "work is NULL");
  leeway_communicator* part = nullptr;
  EXPECT_FAILS(leeway_split(nullptr, 0, 0, &part), LEEWAY_INVALID_ARGUMENT, "communicator is NULL");
}

TEST(CArguments, EveryFunctionBearsNull) {
  leeway_communicator_free(nullptr);
  leeway_pending_free(nullptr);
  leeway_work_free(nullptr);
  leeway_report_free(nullptr);
  leeway_registration_free(nullptr);
  leeway_rendezvous_free(nullptr);
  leeway_replica_free(nullptr);
  leeway_compute_budget_free(nullptr);
  leeway_late_work_free(nullptr);
  EXPECT_EQ(leeway_rank_of(nullptr), LEEWAY_NO_RANK);
  EXPECT_EQ(leeway_size_of(nullptr), 0);
  EXPECT_EQ(leeway_datagram_bytes(nullptr), 0u);
  EXPECT_EQ(leeway_transport_of(nullptr), LEEWAY_TRANSPORT_AUTOMATIC);
  EXPECT_EQ(leeway_state(nullptr), LEEWAY_INVALID_ARGUMENT);
  EXPECT_EQ(leeway_work_done(nullptr), 0);
  EXPECT_EQ(leeway_work_test(nullptr), 0);
  EXPECT_EQ(leeway_pending_done(nullptr), 0);
  EXPECT_STREQ(leeway_rendezvous_address(nullptr), "");
  EXPECT_EQ(leeway_compute_budget_next_micro_batch(nullptr), 0);
  EXPECT_EQ(leeway_compute_budget_should_stop(nullptr), 1);
  EXPECT_EQ(leeway_compute_budget_weight(nullptr), 0.0);
  for (const leeway_status status :
       {leeway_abort(nullptr),
        leeway_explain(nullptr),
        leeway_barrier(nullptr, 0, nullptr),
        leeway_counters(nullptr, nullptr, nullptr),
        leeway_pending_abort(nullptr),
        leeway_pending_wait(nullptr, nullptr),
        leeway_pending_on_done(nullptr, nullptr, nullptr),
        leeway_work_on_done(nullptr, nullptr, nullptr),
        leeway_work_wait_any(nullptr, 1, nullptr),
        leeway_work_wait_all(nullptr, 1),
        leeway_report_create(nullptr),
        leeway_report_get(nullptr, nullptr),
        leeway_report_peer(nullptr, 0, nullptr),
        leeway_report_message(nullptr, 0, nullptr),
        leeway_report_codec(nullptr, nullptr),
        leeway_report_contributors(nullptr, nullptr, 0, nullptr),
        leeway_rendezvous_create(nullptr, nullptr),
        leeway_rendezvous_in_process(nullptr),
        leeway_rendezvous_put(nullptr, "k", nullptr, 0),
        leeway_rendezvous_erase(nullptr, "k"),
        leeway_value_set(nullptr, nullptr, 0),
        leeway_replica_drift(nullptr, nullptr),
        leeway_replica_owned(nullptr, nullptr, nullptr, nullptr),
        leeway_replica_synchronize(nullptr, nullptr),
        leeway_late_work_create(1, nullptr),
        leeway_late_work_keep(nullptr, nullptr),
        leeway_compute_budget_explain(nullptr),
        leeway_compute_budget_synchronize(nullptr),
        leeway_codec_parse(nullptr, nullptr),
        leeway_options_from_environment(nullptr, 0),
        leeway_create_async(nullptr, nullptr),
        leeway_encode_adam_first(nullptr, 1, nullptr, nullptr, nullptr),
        leeway_decode_adam_second(nullptr, 1, 1.0f, nullptr)}) {
    EXPECT_EQ(status, LEEWAY_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace leeway::c_abi
