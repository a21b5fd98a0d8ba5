#include "codec/packet_sample.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::tools::codecs {
namespace {

// Packet p holds the value p throughout.
std::vector<float> packets(std::size_t first, std::size_t count) {
  std::vector<float> values;
  for (std::size_t p = first; p < first + count; ++p) {
    values.insert(values.end(), kPacketElements, static_cast<float>(p));
  }
  return values;
}

std::vector<float> kept(const PacketSample& sample) {
  std::vector<float> firsts;
  for (std::size_t i = 0; i < sample.values().size(); i += kPacketElements) {
    firsts.push_back(sample.values()[i]);
    EXPECT_EQ(sample.values()[std::min(i + kPacketElements, sample.values().size()) - 1],
              firsts.back());
  }
  return firsts;
}

TEST(PacketSample, KeepsAllAsLongAsItFits) {
  PacketSample sample(4);
  sample.add(packets(0, 3));
  sample.add(std::vector<float>(10, 3.0f));
  EXPECT_EQ(sample.values().size(), 3 * kPacketElements + 10);
  EXPECT_EQ(sample.stride(), 1u);
}

TEST(PacketSample, ThinsOutEvenly) {
  PacketSample sample(4);
  sample.add(packets(0, 4));
  EXPECT_EQ(kept(sample), (std::vector<float>{0, 1, 2, 3}));
  sample.add(packets(4, 1));
  EXPECT_EQ(kept(sample), (std::vector<float>{0, 2, 4}));
  sample.add(packets(5, 15));
  EXPECT_EQ(kept(sample), (std::vector<float>{0, 8, 16}));
  EXPECT_EQ(sample.stride(), 8u);
}

TEST(PacketSample, PiecesDoNotMatter) {
  PacketSample at_once(8);
  PacketSample in_pieces(8);
  at_once.add(packets(0, 50));
  for (std::size_t p = 0; p < 50; p += 5) in_pieces.add(packets(p, 5));
  EXPECT_EQ(kept(at_once), kept(in_pieces));
}

}  // namespace
}  // namespace leeway::tools::codecs
