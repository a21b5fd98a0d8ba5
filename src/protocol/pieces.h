// Datagrams that are too long for their path travel in pieces (WIRE 10.6).
//
// A communicator's datagrams are as long as all its paths carried when it was made. A path that has
// become narrower since then carries each of them in a few pieces, and every other path carries it
// whole. The pieces are made before a seal and put together behind it, so that nobody but the peer
// can make one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::protocol {

// In how many pieces a datagram passes where datagrams of `most` bytes do.
constexpr std::size_t pieces_of(std::size_t bytes, std::size_t most) {
  if (bytes <= most) return 1;
  const std::size_t content = most - wire::kPieceHeaderBytes;
  return (bytes + content - 1) / content;
}

// Puts pieces of at most `most` bytes into the place of the train's datagrams; they are of one
// length, so that the train stays one. The train was started for so many pieces
// (TrainBuffer::start). `whole`: memory for it, of TrainBuffer::kTrainBytesMax bytes or empty.
void cut_train(TrainBuffer& train, std::size_t most, std::vector<std::byte>& whole);

// Of one peer. A new datagram takes the place of the one that began kPlaces numbers before, an old
// one never that of a newer. Memory is allocated once, with the first piece.
class Pieces {
 public:
  static constexpr std::uint32_t kPlaces = 16;

  // The datagram, if it is whole now; valid until the next call. Empty: parts are missing, or the
  // piece is old, a copy, or does not fit the others (then nothing has changed).
  ByteSpan add(std::uint32_t number, const wire::Piece& piece, ByteSpan content);

 private:
  struct Place {
    std::uint32_t number = 0;
    std::uint32_t content_bytes = 0;  // 0: never used
    std::uint32_t whole = 0;
    std::uint64_t arrived = 0;  // a bit a piece
  };

  std::array<Place, kPlaces> places_;
  std::vector<std::byte> memory_;
};

}  // namespace leeway::protocol
