#include "codec/sampler.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace leeway::tools::codecs {
namespace {

using namespace std::chrono_literals;
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(Sampler, SamplesWalkRoundTheBuffer) {
  Sampler sampler(10, 1ms);
  Ranges ranges;
  const Sampler::Work note = [&](std::size_t begin, std::size_t end) {
    ranges.emplace_back(begin, end);
  };
  sampler.rate(note, 4);
  sampler.rate(note, 4);
  sampler.rate(note, 14);
  EXPECT_EQ(ranges, (Ranges{{0, 4}, {4, 8}, {8, 10}, {0, 10}, {0, 2}}));
}

TEST(Sampler, DifferentWorkContinuesWhereTheOtherEnded) {
  Sampler sampler(10, 1ms);
  Ranges ranges;
  sampler.rate([](std::size_t, std::size_t) {}, 7);
  sampler.rate([&](std::size_t begin, std::size_t end) { ranges.emplace_back(begin, end); }, 1);
  EXPECT_EQ(ranges, (Ranges{{7, 8}}));
}

TEST(Sampler, SlowWorkIsSampledByOnePacket) {
  Sampler sampler(10, 100us);
  const Sampler::Work slow = [](std::size_t begin, std::size_t end) {
    const auto until = thread_time() + (end - begin) * 1ms;
    while (thread_time() < until) {
    }
  };
  EXPECT_EQ(sampler.packets_for(slow), 1u);
  EXPECT_LE(sampler.rate(slow, 2), 1000.0);  // packets/s
}

}  // namespace
}  // namespace leeway::tools::codecs
