// Tests a source and a sink of C callbacks, which copy native floats and sum them in this file.
#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::Each;
using testing::Group;

// The tensor of one rank. Leeway gets no pointer to it, and reaches it only by the callbacks.
struct Elsewhere {
  std::vector<float> values;
  std::vector<std::byte> landing;
  leeway_payload_layout* layout = nullptr;
  leeway_codec codec = -1;
  std::set<std::uint32_t> summed;

  ~Elsewhere() { leeway_payload_layout_free(layout); }

  float* elements_of(const leeway_payload_chunk& chunk) {
    leeway_payload_block block = LEEWAY_PAYLOAD_BLOCK_INIT;
    EXPECT_DONE(leeway_payload_block_at(layout, chunk.half, chunk.owner, &block));
    return values.data() + block.offset + chunk.first_element;
  }

  static leeway_status begin(void* user, const leeway_payload_layout* layout) {
    auto& self = *static_cast<Elsewhere*>(user);
    leeway_payload_half_info info = LEEWAY_PAYLOAD_HALF_INFO_INIT;
    leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
    EXPECT_DONE(leeway_payload_half_get(layout, LEEWAY_PAYLOAD_REDUCE, &info, &codec));
    EXPECT_EQ(info.ranks, 2);
    EXPECT_EQ(info.dtype, LEEWAY_F32);
    EXPECT_EQ(info.block_count, 2u);
    self.codec = codec.codec;
    return leeway_payload_layout_copy(layout, &self.layout);
  }
  static const void* encoded(void* user, const leeway_payload_chunk* chunk) {
    return static_cast<Elsewhere*>(user)->elements_of(*chunk);
  }
  static leeway_status landing_of(void* user, const leeway_payload_layout* layout, void** memory,
                                  std::size_t* bytes) {
    auto& self = *static_cast<Elsewhere*>(user);
    self.landing.resize(leeway_payload_landing_bytes(layout));
    *memory = self.landing.data();
    *bytes = self.landing.size();
    return LEEWAY_OK;
  }
  static void take(void* user, const leeway_payload_chunk* chunk,
                   const leeway_payload_contributions* contributions, std::size_t count) {
    auto& self = *static_cast<Elsewhere*>(user);
    float* const to = self.elements_of(*chunk);
    for (std::size_t i = 0; i < count; ++i) {
      leeway_payload_contribution one = LEEWAY_PAYLOAD_CONTRIBUTION_INIT;
      ASSERT_DONE(leeway_payload_contribution_at(contributions, i, &one));
      ASSERT_EQ(one.scale_count, chunk->packets);
      EXPECT_EQ(one.scales[0], 1.0f);
      if (one.data == nullptr) continue;  // this rank's own elements, which are there already
      std::vector<float> came(chunk->elements);
      ASSERT_EQ(chunk->bytes, came.size() * sizeof(float));
      std::memcpy(came.data(), one.data, chunk->bytes);
      for (std::size_t e = 0; e < came.size(); ++e)
        to[e] = chunk->half == LEEWAY_PAYLOAD_REDUCE ? to[e] + came[e] : came[e];
    }
  }
  static std::int32_t used(void*, const leeway_payload_chunk*) { return 1; }
};

TEST(CPayload, AReductionOfTensorsThatLieElsewhere) {
  constexpr std::size_t kCount = 100'000;
  Group group(2);
  group.on_all([](leeway_communicator* rank) {
    Elsewhere elsewhere;
    elsewhere.values.assign(kCount, leeway_rank_of(rank) + 1.0f);
    leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
    leeway_work* work = nullptr;
    {
      leeway_payload_source source = LEEWAY_PAYLOAD_SOURCE_INIT;
      leeway_payload_sink sink = LEEWAY_PAYLOAD_SINK_INIT;
      source.user = sink.user = &elsewhere;
      source.begin = Elsewhere::begin;
      source.encoded = Elsewhere::encoded;
      source.poll_every_ns = 100'000;
      sink.landing = Elsewhere::landing_of;
      sink.take = Elsewhere::take;
      sink.used = Elsewhere::used;
      options.source = &source;
      options.sink = &sink;
      ASSERT_DONE(leeway_all_reduce_async(rank, {nullptr, kCount, LEEWAY_F32},
                                          {nullptr, kCount, LEEWAY_F32}, &options, &work));
      // The library copied the callbacks at the call, so clearing this struct has no effect.
      source = LEEWAY_PAYLOAD_SOURCE_INIT;
    }
    EXPECT_DONE(leeway_notify_payload(rank));
    EXPECT_DONE(leeway_work_wait(work, nullptr));
    leeway_work_free(work);
    EXPECT_THAT(elsewhere.values, Each(3.0f));
    EXPECT_EQ(elsewhere.codec, LEEWAY_CODEC_FP32) << "what native is for floats";
    leeway_payload_chunk chunk = LEEWAY_PAYLOAD_CHUNK_INIT;
    EXPECT_DONE(leeway_payload_chunk_at(elsewhere.layout, LEEWAY_PAYLOAD_SPREAD, 1, 0, &chunk));
    EXPECT_GT(chunk.packets, 0u);
    leeway_payload_block block = LEEWAY_PAYLOAD_BLOCK_INIT;
    EXPECT_FAILS(leeway_payload_block_at(elsewhere.layout, LEEWAY_PAYLOAD_SPREAD, 2, &block),
                 LEEWAY_INVALID_ARGUMENT, "block 2");
    EXPECT_FAILS(
        leeway_payload_chunk_at(elsewhere.layout, LEEWAY_PAYLOAD_SPREAD, 1, 1u << 30, &chunk),
        LEEWAY_INVALID_ARGUMENT, "index");
    EXPECT_FAILS(leeway_payload_block_at(elsewhere.layout, 2, 0, &block), LEEWAY_INVALID_ARGUMENT,
                 "half 2");
  });
}

TEST(CPayload, AMissingCallbackIsRefused) {
  Group group(1);
  leeway_payload_source source = LEEWAY_PAYLOAD_SOURCE_INIT;
  leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  options.source = &source;
  EXPECT_FAILS(leeway_all_reduce(group.ranks[0], {nullptr, 1, LEEWAY_F32}, {nullptr, 1, LEEWAY_F32},
                                 &options, nullptr),
               LEEWAY_INVALID_ARGUMENT, "begin is NULL");
}

TEST(CPayload, AnErrorOfBeginFailsTheCall) {
  Group group(1);
  Elsewhere elsewhere;
  leeway_payload_source source = LEEWAY_PAYLOAD_SOURCE_INIT;
  leeway_payload_sink sink = LEEWAY_PAYLOAD_SINK_INIT;
  source.begin = [](void*, const leeway_payload_layout*) {
    return leeway_fail(LEEWAY_UNAVAILABLE, "the device is gone");
  };
  source.encoded = Elsewhere::encoded;
  sink.user = &elsewhere;
  sink.landing = Elsewhere::landing_of;
  sink.take = Elsewhere::take;
  sink.used = Elsewhere::used;
  leeway_collective_options options = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  options.source = &source;
  options.sink = &sink;
  EXPECT_FAILS(leeway_all_reduce(group.ranks[0], {nullptr, 8, LEEWAY_F32}, {nullptr, 8, LEEWAY_F32},
                                 &options, nullptr),
               LEEWAY_UNAVAILABLE, "the device is gone");
}

}  // namespace
}  // namespace leeway::c_abi
