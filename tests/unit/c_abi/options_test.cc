// The C structs have the same contents as their C++ twins.
#include "c_abi/options.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::HasSubstr;

TEST(COptions, TheInitialiserIsTheDefaultOfCpp) {
  const leeway_options init = LEEWAY_OPTIONS_INIT;
  const Options expected;
  for (const leeway_options* given : {&init, static_cast<const leeway_options*>(nullptr)}) {
    const auto read = options_of(given);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->rank, expected.rank);
    EXPECT_EQ(read->world_size, expected.world_size);
    EXPECT_EQ(read->rendezvous, expected.rendezvous);
    EXPECT_EQ(read->transport, expected.transport);
    EXPECT_EQ(read->multicast, expected.multicast);
    EXPECT_EQ(read->bind_address, expected.bind_address);
    EXPECT_EQ(read->join_timeout, expected.join_timeout);
    EXPECT_EQ(read->peer_timeout, expected.peer_timeout);
    EXPECT_EQ(read->datagram_bytes, expected.datagram_bytes);
    EXPECT_EQ(read->socket_buffer_bytes, expected.socket_buffer_bytes);
    EXPECT_EQ(read->window_bytes, expected.window_bytes);
    EXPECT_EQ(read->seed, expected.seed);
    EXPECT_FALSE(read->faults.any());
    EXPECT_EQ(read->log_level, expected.log_level);
    EXPECT_EQ(read->communicator_name, expected.communicator_name);
    EXPECT_EQ(read->store, nullptr);
    EXPECT_EQ(read->restart_count, expected.restart_count);
    EXPECT_EQ(read->congestion, expected.congestion);
    EXPECT_EQ(read->rate_bits_per_second, expected.rate_bits_per_second);
    EXPECT_EQ(read->lanes, expected.lanes);
  }
}

TEST(COptions, LanesArrive) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.lanes = 4;
  const auto read = options_of(&options);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->lanes, 4);
}

TEST(COptions, CongestionControlArrives) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.congestion = LEEWAY_CONGESTION_FIXED;
  options.rate_bits_per_second = 90'000'000;
  const auto read = options_of(&options);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->congestion, CongestionControl::fixed);
  EXPECT_EQ(read->rate_bits_per_second, 90'000'000u);
  options.congestion = LEEWAY_CONGESTION_FABRIC + 1;
  const auto refused = options_of(&options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().text(), HasSubstr("congestion"));
}

TEST(COptions, TheInitialiserOfACallIsTheDefaultOfCpp) {
  const leeway_collective_options init = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  const auto call_read = call_of(&init);
  ASSERT_TRUE(call_read.ok()) << call_read.status().text();
  const CollectiveOptions* const read = &call_read->options;
  const CollectiveOptions expected;
  EXPECT_EQ(read->op, expected.op);
  EXPECT_EQ(read->factor, expected.factor);
  EXPECT_EQ(read->delivery.kind, expected.delivery.kind);
  EXPECT_EQ(read->delivery.loss_max, expected.delivery.loss_max);
  EXPECT_EQ(read->delivery.deadline, expected.delivery.deadline);
  EXPECT_EQ(read->spread, expected.spread);
  EXPECT_EQ(read->codec, expected.codec);
  EXPECT_EQ(read->spread_codec, expected.spread_codec);
  EXPECT_EQ(read->estimator, expected.estimator);
  EXPECT_EQ(read->weight, expected.weight);
  EXPECT_EQ(read->tag, expected.tag);
  EXPECT_EQ(read->confirm_use, expected.confirm_use);
  EXPECT_TRUE(read->owner_weights.empty() && read->control_variate.empty() &&
              read->residual.empty());
}

TEST(COptions, EveryMemberArrives) {
  leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
  codec.codec = LEEWAY_CODEC_NVFP4;
  const leeway_scalar factor = {LEEWAY_I64, 0, {.i64 = -3}};
  const double weights[2] = {1.0, 2.0};
  float residual[3] = {};
  leeway_collective_options call = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  call.delivery = LEEWAY_BOUNDED;
  call.loss_max = 0.25;
  call.deadline_ns = LEEWAY_NO_DEADLINE;
  call.spread = LEEWAY_BEST_EFFORT;
  call.codec = &codec;
  call.factor = &factor;
  call.owner_weights = weights;
  call.owner_weight_count = 2;
  call.residual = residual;
  call.residual_count = 3;
  call.keep_non_finite = 1;
  call.tag = 9;
  call.confirm_use = 1;
  const auto call_read = call_of(&call);
  ASSERT_TRUE(call_read.ok()) << call_read.status().text();
  const CollectiveOptions* const read = &call_read->options;
  EXPECT_EQ(read->delivery.kind, Delivery::Kind::bounded);
  EXPECT_EQ(read->delivery.loss_max, 0.25);
  EXPECT_EQ(read->delivery.deadline, no_deadline);
  EXPECT_EQ(read->spread, Delivery::Kind::best_effort);
  EXPECT_EQ(read->codec, CodecOptions(Codec::nvfp4));
  EXPECT_FALSE(read->spread_codec.has_value());
  EXPECT_EQ(read->factor, Scalar(-3));
  EXPECT_EQ(read->owner_weights.data(), weights);
  EXPECT_EQ(read->residual.size(), 3u);
  EXPECT_EQ(read->tag, 9u);
  EXPECT_TRUE(read->confirm_use);
  EXPECT_TRUE(read->keep_non_finite);
}

TEST(COptions, FaultsAreText) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.faults = "loss=0.5,seed=3";
  const auto read = options_of(&options);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->faults.loss, 0.5);
  EXPECT_EQ(read->faults.seed, 3u);
  options.faults = "loss=2";
  EXPECT_FALSE(options_of(&options).ok());
}

TEST(COptions, TheEnvironmentIsReadAsInCpp) {
  const std::map<const char*, const char*> variables = {
      {"LEEWAY_RANK", "1"},
      {"LEEWAY_WORLD_SIZE", "3"},
      {"LEEWAY_FAULT", "loss=0.125,delay=5ms,link=0,0.5,0,list=0>1/*/0/3,1>2/*/0/4"},
      {"LEEWAY_PEER_TIMEOUT_MS", "0"},
      {"LEEWAY_RATE", "50000000"},
      {"LEEWAY_SECRET_FILE", "/etc/leeway/cluster.key"},
      {"LEEWAY_TLS_KEY", "/etc/rank.key"},
      {"LEEWAY_INSECURE", "1"},
      {"LEEWAY_PORT", "7001"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  leeway_options options = LEEWAY_OPTIONS_INIT;
  EXPECT_DONE(leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT));
  EXPECT_EQ(options.rank, 1);
  EXPECT_EQ(options.world_size, 3);
  EXPECT_EQ(options.peer_timeout_ns, LEEWAY_NO_DEADLINE);
  EXPECT_EQ(options.congestion, LEEWAY_CONGESTION_FIXED);
  EXPECT_EQ(options.rate_bits_per_second, 50'000'000u);
  EXPECT_EQ(options.insecure, 1);
  EXPECT_EQ(options.port, 7001);
  const auto read = options_of(&options);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->secret_file, "/etc/leeway/cluster.key");
  EXPECT_EQ(read->tls_key, "/etc/rank.key");
  EXPECT_TRUE(read->insecure);
  EXPECT_EQ(read->port, 7001);
  EXPECT_EQ(read->faults.loss, 0.125);
  EXPECT_EQ(read->faults.delay, std::chrono::milliseconds(5));
  EXPECT_EQ(read->faults.link_loss, (std::vector<double>{0.0, 0.5, 0.0}));
  EXPECT_EQ(read->faults.list, "0>1/*/0/3,1>2/*/0/4");
  EXPECT_DONE(leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_CALLER));
  EXPECT_EQ(options.rank, -1);
  ::setenv("LEEWAY_RANK", "x", 1);
  EXPECT_FAILS(leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT),
               LEEWAY_INVALID_ARGUMENT, "LEEWAY_RANK");
  for (const auto& [name, value] : variables) ::unsetenv(name);
}

TEST(CCodec, TextsAreReadAndWritten) {
  leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
  char text[64];
  for (const char* name : {"native", "nvfp4:nearest", "mxfp4:floor:rotate", "luq:draws=2",
                           "int8:clip", "sparse:1/2", "nvfp4_te:bound=1"}) {
    ASSERT_DONE(leeway_codec_parse(name, &codec));
    ASSERT_DONE(leeway_codec_format(&codec, text, sizeof text));
    EXPECT_STREQ(text, name);
  }
  EXPECT_FAILS(leeway_codec_format(&codec, text, 5), LEEWAY_INVALID_ARGUMENT, "too few");
  EXPECT_FAILS(leeway_codec_parse("nvfp5", &codec), LEEWAY_INVALID_ARGUMENT, "nvfp5");
  codec.draws = 256 + 1;  // must not become a valid number by being cut
  EXPECT_FAILS(leeway_codec_validate(&codec), LEEWAY_INVALID_ARGUMENT, "draws");
}

TEST(CTypes, NamesAndBytes) {
  EXPECT_EQ(leeway_data_type_bytes(LEEWAY_F64), 8u);
  EXPECT_EQ(leeway_data_type_bytes(LEEWAY_F8E5M2), 1u);
  EXPECT_EQ(leeway_data_type_bytes(99), 0u);
  EXPECT_STREQ(leeway_data_type_name(LEEWAY_BF16), "bfloat16");
  EXPECT_STREQ(leeway_data_type_name(-1), "unknown");
  EXPECT_STREQ(leeway_transport_name(LEEWAY_TRANSPORT_UDP), "udp");
  EXPECT_STREQ(leeway_transport_name(77), "unknown");
  EXPECT_STREQ(leeway_congestion_control_name(LEEWAY_CONGESTION_WAN), "wan");
  EXPECT_STREQ(leeway_congestion_control_name(9), "unknown");
}

}  // namespace
}  // namespace leeway::c_abi
