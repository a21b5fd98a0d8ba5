// Each C operation must do what its C++ twin does.
#include <gmock/gmock.h>

#include <numeric>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::Group;
using testing::input_of;
using testing::output_of;

// Returns a rank's three values, which are 10 * rank and the two numbers after it.
std::vector<float> values_of(const leeway_communicator* rank) {
  std::vector<float> values(3);
  std::iota(values.begin(), values.end(), 10.0f * leeway_rank_of(rank));
  return values;
}

TEST(CCollectives, ReductionsOverThreeRanks) {
  Group group(3);
  group.on_all([](leeway_communicator* rank) {
    const std::vector<float> mine = values_of(rank);
    std::vector<float> sum(3), part(1), root(3);
    EXPECT_DONE(leeway_all_reduce(rank, input_of(mine), output_of(sum), nullptr, nullptr));
    EXPECT_THAT(sum, ElementsAre(30, 33, 36));
    leeway_collective_options max = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    max.op = LEEWAY_MAX;
    EXPECT_DONE(leeway_reduce_scatter(rank, input_of(mine), output_of(part), &max, nullptr));
    EXPECT_EQ(part[0], 20.0f + leeway_rank_of(rank));
    const leeway_tensor out =
        leeway_rank_of(rank) == 1 ? output_of(root) : leeway_tensor{nullptr, 3, LEEWAY_F32};
    EXPECT_DONE(leeway_reduce(rank, input_of(mine), out, 1, nullptr, nullptr));
    if (leeway_rank_of(rank) == 1) {
      EXPECT_THAT(root, ElementsAre(30, 33, 36));
    }
  });
}

TEST(CCollectives, PremultipliedSumsTakeAFactor) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    std::int64_t value = 5;
    const leeway_scalar factor = {LEEWAY_I64, 0, {.i64 = leeway_rank_of(rank) == 0 ? -1 : 3}};
    leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    options.op = LEEWAY_PREMUL_SUM;
    options.factor = &factor;
    EXPECT_DONE(leeway_all_reduce(rank, {&value, 1, LEEWAY_I64}, {&value, 1, LEEWAY_I64}, &options,
                                  nullptr));
    EXPECT_EQ(value, 10);
  });
}

TEST(CCollectives, GathersAndBroadcasts) {
  Group group(3);
  group.on_all([](leeway_communicator* rank) {
    const auto self = static_cast<float>(leeway_rank_of(rank));
    std::vector<float> mine(1, self), all(3), gathered(3), scattered(1), data(2, self);
    EXPECT_DONE(leeway_all_gather(rank, input_of(mine), output_of(all), nullptr, nullptr));
    EXPECT_THAT(all, ElementsAre(0, 1, 2));
    EXPECT_DONE(leeway_gather(rank, input_of(mine), output_of(gathered), 2, nullptr, nullptr));
    if (self == 2) {
      EXPECT_THAT(gathered, ElementsAre(0, 1, 2));
    }
    EXPECT_DONE(leeway_scatter(rank, input_of(all), output_of(scattered), 0, nullptr, nullptr));
    EXPECT_EQ(scattered[0], self);
    EXPECT_DONE(leeway_broadcast(rank, output_of(data), 1, nullptr, nullptr));
    EXPECT_THAT(data, Each(1.0f));
    EXPECT_DONE(leeway_all_to_all(rank, input_of(all), output_of(gathered), nullptr, nullptr));
    EXPECT_THAT(gathered, Each(self));
    EXPECT_DONE(leeway_barrier(rank, LEEWAY_NO_DEADLINE, nullptr));
  });
}

TEST(CCollectives, UnevenBlocks) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    const int self = leeway_rank_of(rank);
    const std::size_t counts[2] = {1, 3}, displacements[2] = {3, 0};
    const leeway_blocks packed = {counts, nullptr}, swapped = {counts, displacements};
    std::vector<float> mine(counts[self], static_cast<float>(self + 1)), all(4), part(counts[self]);
    EXPECT_DONE(
        leeway_all_gather_uneven(rank, input_of(mine), output_of(all), swapped, nullptr, nullptr));
    EXPECT_THAT(all, ElementsAre(2, 2, 2, 1));
    EXPECT_DONE(leeway_reduce_scatter_uneven(rank, input_of(all), packed, output_of(part), nullptr,
                                             nullptr));
    EXPECT_EQ(part.back(), self == 0 ? 4.0f : 2.0f);
    // Rank i sends i + 1 elements to each rank.
    const std::size_t sent[2] = {self + 1u, self + 1u}, received[2] = {1, 2};
    std::vector<float> out(2 * (self + 1), static_cast<float>(self)), in(3);
    EXPECT_DONE(leeway_all_to_all_uneven(rank, input_of(out), {sent, nullptr}, output_of(in),
                                         {received, nullptr}, nullptr, nullptr));
    EXPECT_THAT(in, ElementsAre(0, 1, 1));
  });
}

TEST(CCollectives, MessagesWithTagsFromAnyRank) {
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    leeway_collective_options tagged = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    tagged.tag = 7;
    std::vector<float> data(100, 3.0f);
    if (leeway_rank_of(rank) == 0) {
      EXPECT_DONE(leeway_send(rank, {data.data(), 60, LEEWAY_F32}, 1, &tagged, nullptr));
      return;
    }
    leeway_report* report = nullptr;
    leeway_message_report message = LEEWAY_MESSAGE_REPORT_INIT;
    ASSERT_DONE(leeway_report_create(&report));
    EXPECT_DONE(leeway_recv(rank, output_of(data), LEEWAY_ANY_RANK, &tagged, report));
    EXPECT_DONE(leeway_report_message(report, 0, &message));
    EXPECT_EQ(message.source, 0);
    EXPECT_EQ(message.tag, 7u);
    EXPECT_EQ(message.count, 60u);
    EXPECT_EQ(leeway_report_message(report, 1, &message), LEEWAY_INVALID_ARGUMENT);
    leeway_report_free(report);
  });
}

// A collective with unreadable arguments still counts as a call, as in C++. Otherwise the peer
// would match its own call with this rank's next one.
TEST(CCollectives, OneThatCannotBeReadFailsOnThePeersAndTheNextIsRight) {
  Group group(2);
  for (int bad = 0; bad < 7; ++bad) {
    group.on_all([&](leeway_communicator* rank) {
      const bool errs = leeway_rank_of(rank) == 0;
      float value = 1;
      leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
      leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
      leeway_tensor data = {&value, 1, LEEWAY_F32};
      if (errs && bad == 0) data.data = nullptr;
      if (errs && bad == 1) data.dtype = 99;
      if (errs && bad == 2) options.size = 0;
      if (errs && bad == 3) options.op = 77;
      if (errs && bad == 4) options.delivery = 9;
      if (errs && bad == 5) {
        codec.codec = 99;
        options.codec = &codec;
      }
      const leeway_const_tensor input = {data.data, 1, data.dtype};
      const leeway_status status =
          errs && bad == 6 ? leeway_all_reduce_async(rank, input, data, &options, nullptr)
                           : leeway_all_reduce(rank, input, data, &options, nullptr);
      EXPECT_EQ(status, errs ? LEEWAY_INVALID_ARGUMENT : LEEWAY_MISMATCH)
          << bad << ": " << leeway_last_error();
      value = 1;
      EXPECT_DONE(leeway_all_reduce(rank, {&value, 1, LEEWAY_F32}, {&value, 1, LEEWAY_F32}, nullptr,
                                    nullptr));
      EXPECT_EQ(value, 2) << bad;
    });
  }
}

TEST(CCollectives, GroupsOfMessages) {
  Group group(3);
  group.on_all([](leeway_communicator* rank) {
    float out = 100.0f + leeway_rank_of(rank);
    std::vector<float> in(3);
    std::vector<leeway_message> messages;
    for (leeway_rank peer = 0; peer < 3; ++peer) {
      leeway_message message = LEEWAY_MESSAGE_INIT;
      message.peer = peer;
      message.count = 1;
      message.data = &out;
      messages.push_back(message);
      message.kind = LEEWAY_RECV;
      message.data = &in[peer];
      messages.insert(messages.begin(), message);
    }
    EXPECT_DONE(leeway_exchange(rank, messages.data(), messages.size(), nullptr, nullptr));
    EXPECT_THAT(in, ElementsAre(100, 101, 102));
  });
}

TEST(CReport, SaysWhatArrived) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  options.faults = "loss=0.2,seed=5";
  Group group(3, &options);
  group.on_all([](leeway_communicator* rank) {
    std::vector<float> gradient(50'000, 1.0f);
    leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT, used = LEEWAY_CODEC_OPTIONS_INIT;
    codec.codec = LEEWAY_CODEC_BF16;
    leeway_collective_options lossy = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    lossy.op = LEEWAY_AVG;
    lossy.delivery = LEEWAY_BEST_EFFORT;
    lossy.codec = &codec;
    leeway_report* report = nullptr;
    ASSERT_DONE(leeway_report_create(&report));
    EXPECT_DONE(leeway_all_reduce(rank, input_of(gradient), output_of(gradient), &lossy, report));
    leeway_report_summary summary = LEEWAY_REPORT_SUMMARY_INIT;
    EXPECT_DONE(leeway_report_get(report, &summary));
    EXPECT_EQ(summary.peer_count, 2u);
    EXPECT_EQ(summary.estimator, LEEWAY_RATIO);
    EXPECT_GT(summary.loss_first_pass, 0.05);
    EXPECT_LT(summary.loss_first_pass, 0.4);
    EXPECT_TRUE(summary.complete);
    EXPECT_GT(summary.total_ns, 0);
    EXPECT_TRUE(summary.noise_measured);
    EXPECT_DOUBLE_EQ(summary.variance_estimate, summary.noise_loss_variance);
    leeway_peer_report peer = LEEWAY_PEER_REPORT_INIT;
    EXPECT_DONE(leeway_report_peer(report, 1, &peer));
    EXPECT_GT(peer.expected, 0u);
    EXPECT_GT(peer.sent, 0u);
    EXPECT_EQ(leeway_report_peer(report, 2, &peer), LEEWAY_INVALID_ARGUMENT);
    EXPECT_DONE(leeway_report_codec(report, &used));
    EXPECT_EQ(used.codec, LEEWAY_CODEC_BF16);
    std::uint64_t histogram[4] = {};
    std::size_t count = 0;
    EXPECT_DONE(leeway_report_contributors(report, histogram, 4, &count));
    EXPECT_EQ(count, 4u);
    EXPECT_GT(std::accumulate(histogram, histogram + 4, std::uint64_t{0}), 0u);
    leeway_report_free(report);
  });
}

}  // namespace
}  // namespace leeway::c_abi
