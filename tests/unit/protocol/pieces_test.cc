#include "protocol/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace leeway::protocol {
namespace {

using Bytes = std::vector<std::byte>;

Bytes datagram_of(std::size_t bytes, std::uint32_t number) {
  Bytes datagram(bytes);
  for (std::size_t i = 0; i < bytes; ++i) datagram[i] = static_cast<std::byte>(i * 7 + number);
  wire::encode_bare({wire::PacketType::data, 5, 1, 2, number}, datagram);
  return datagram;
}

// Cuts datagrams into pieces of at most `most` bytes. All datagrams but the last have one length;
// the last may be shorter.
std::vector<Bytes> pieces_of_train(const std::vector<Bytes>& datagrams, std::size_t most) {
  const auto train = std::make_unique<TrainBuffer>();
  train->start(2, pieces_of(datagrams[0].size(), most));
  for (const Bytes& datagram : datagrams) {
    EXPECT_TRUE(train->fits(datagram.size()));
    std::copy(datagram.begin(), datagram.end(), train->scratch(datagram.size()).begin());
    train->append(datagram.size(), {});
  }
  Bytes whole;
  cut_train(*train, most, whole);
  EXPECT_EQ(train->to(), 2);
  EXPECT_LE(train->segment_bytes(), most);
  Bytes row;
  for (const Slice& slice : train->train().slices)
    row.insert(row.end(), slice.data, slice.data + slice.bytes);
  std::vector<Bytes> pieces;
  for (std::size_t at = 0; at < row.size(); at += train->segment_bytes()) {
    const auto end = row.begin() +
                     static_cast<std::ptrdiff_t>(std::min(at + train->segment_bytes(), row.size()));
    pieces.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(at), end);
  }
  return pieces;
}

ByteSpan add(Pieces& pieces, const Bytes& bytes) {
  wire::Prefix prefix;
  wire::Piece piece;
  ByteSpan content;
  EXPECT_EQ(wire::decode_prefix(bytes, nullptr, prefix), wire::Refusal::none);
  EXPECT_EQ(prefix.type, wire::PacketType::piece);
  EXPECT_EQ(prefix.epoch, 5u);
  EXPECT_EQ(wire::decode_piece(bytes, piece, content), wire::Refusal::none);
  return pieces.add(prefix.sequence, piece, content);
}

bool equal(ByteSpan a, const Bytes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(PiecesOf, IsOneForWhatFits) {
  EXPECT_EQ(pieces_of(1200, 1200), 1u);
  EXPECT_EQ(pieces_of(1201, 1200), 2u);
  EXPECT_EQ(pieces_of(2 * 1176, 1200), 2u);
  EXPECT_EQ(pieces_of(2 * 1176 + 1, 1200), 3u);
  EXPECT_EQ(pieces_of(9000, SIZE_MAX), 1u);
}

TEST(Pieces, MakeTheDatagramInAnyOrder) {  // WIRE 10.6, 10.7
  for (const std::size_t bytes : {1201u, 1472u, 4001u, 9216u}) {
    const Bytes datagram = datagram_of(bytes, 77);
    std::vector<Bytes> parts = pieces_of_train({datagram}, 1200);
    EXPECT_EQ(parts.size(), pieces_of(bytes, 1200));
    std::shuffle(parts.begin(), parts.end(), std::mt19937(1));
    Pieces pieces;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_TRUE(add(pieces, parts[i]).empty());
    EXPECT_TRUE(equal(add(pieces, parts.back()), datagram)) << bytes;
    EXPECT_TRUE(add(pieces, parts.back()).empty()) << "a copy makes no second datagram";
  }
}

TEST(Pieces, OfATrainAreATrainWithItsShortEndBehind) {
  std::vector<Bytes> datagrams;
  for (std::uint32_t i = 0; i < 32; ++i) datagrams.push_back(datagram_of(1440, 100 + i));
  datagrams[31] = datagram_of(40, 131);
  const std::vector<Bytes> parts = pieces_of_train(datagrams, 1168);
  ASSERT_EQ(parts.size(), 63u);
  EXPECT_EQ(parts.back(), datagrams[31]) << "which is not cut";
  Pieces pieces;
  for (std::size_t i = 0; i < 31; ++i) {
    EXPECT_EQ(parts[2 * i].size(), 744u);
    EXPECT_TRUE(add(pieces, parts[2 * i]).empty());
    EXPECT_TRUE(equal(add(pieces, parts[2 * i + 1]), datagrams[i]));
  }
}

TEST(Pieces, ATrainKeepsRoomForThem) {
  const auto train = std::make_unique<TrainBuffer>();
  train->start(2, 2);
  std::size_t count = 0;
  for (; train->has_room(); ++count) {
    const Bytes datagram = datagram_of(1440, 1);
    std::copy(datagram.begin(), datagram.end(), train->scratch(1440).begin());
    train->append(1440, {});
  }
  EXPECT_EQ(count, 32u);
  train->start(2);
  EXPECT_EQ(train->empty(), true);
}

TEST(Pieces, OfOlderDatagramsDoNotReplaceNewer) {
  const std::vector<Bytes> old = pieces_of_train({datagram_of(1440, 100)}, 1200);
  const std::vector<Bytes> fresh =
      pieces_of_train({datagram_of(1440, 100 + Pieces::kPlaces)}, 1200);
  Pieces pieces;
  EXPECT_TRUE(add(pieces, old[0]).empty());
  EXPECT_TRUE(add(pieces, fresh[0]).empty());
  EXPECT_TRUE(add(pieces, old[1]).empty());
  EXPECT_FALSE(add(pieces, fresh[1]).empty());
}

TEST(Pieces, ThatDoNotFitTheOthersChangeNothing) {
  const std::vector<Bytes> parts = pieces_of_train({datagram_of(1440, 9)}, 1200);
  const std::vector<Bytes> other = pieces_of_train({datagram_of(1440, 9)}, 600);
  Pieces pieces;
  EXPECT_TRUE(add(pieces, parts[0]).empty());
  for (const Bytes& part : other) EXPECT_TRUE(add(pieces, part).empty());
  EXPECT_TRUE(equal(add(pieces, parts[1]), datagram_of(1440, 9)));
}

TEST(Pieces, LongerThanAFrameAreNotKept) {
  Pieces pieces;
  const Bytes content(20000);
  EXPECT_TRUE(pieces.add(1, {.whole = 30000, .offset = 0}, content).empty());
  EXPECT_TRUE(pieces.add(1, {.whole = 30000, .offset = 20000}, content).empty());
}

}  // namespace
}  // namespace leeway::protocol
