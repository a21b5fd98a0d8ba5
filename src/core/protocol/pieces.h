// Datagrams that are too long for their path travel in pieces (WIRE 10.6).
//
// A communicator's datagrams are as long as all its paths carried when it was made. A path that has
// become narrower since then carries each datagram in a few pieces; other paths carry it whole.
// Each piece is sealed and opened like a datagram, so only the peer can make one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::protocol {

// Returns how many pieces a datagram of `bytes` makes on a path that carries `most` bytes.
constexpr std::size_t pieces_of(std::size_t bytes, std::size_t most) {
  if (bytes <= most) return 1;
  const std::size_t content = most - wire::kPieceHeaderBytes;
  return (bytes + content - 1) / content;
}

// Replaces the train's datagrams by pieces of at most `most` bytes. All pieces have one length, so
// that they still form one train. The train must have been started for this number of pieces
// (TrainBuffer::start). `whole`: scratch memory, TrainBuffer::kTrainBytesMax bytes or empty.
void cut_train(TrainBuffer& train, std::size_t most, std::vector<std::byte>& whole);

// Pieces of one peer's datagrams, by the datagram's number modulo kPlaces. Only a newer datagram
// takes the place of another one. Memory is allocated once, with the first piece.
class Pieces {
 public:
  static constexpr std::uint32_t kPlaces = 16;

  // Adds a piece. Returns the datagram, valid until the next call, if no piece is missing any more.
  // Otherwise returns an empty span. A piece that is old, a copy, or does not fit the other pieces
  // changes nothing.
  ByteSpan add(std::uint32_t number, const wire::Piece& piece, ByteSpan content);

 private:
  struct Place {
    std::uint32_t number = 0;
    std::uint32_t content_bytes = 0;  // 0 if never used
    std::uint32_t whole = 0;
    std::uint64_t arrived = 0;  // one bit for each piece
  };

  std::array<Place, kPlaces> places_;
  std::vector<std::byte> memory_;
};

}  // namespace leeway::protocol
