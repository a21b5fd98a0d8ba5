// The messages between two ranks that Communicator::exchange() sends and receives.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// One send or receive of Communicator::exchange().
struct Message {
  // The two kinds of message.
  enum class Kind : std::uint8_t {
    send = 0,
    recv,
  };
  // Number of kinds.
  static constexpr int kKinds = 2;
  Kind kind;              // which end of the message this rank is
  ConstTensorView input;  // send only: the elements to send
  // Recv only: the memory that the elements go to. Its `count` is the most that the message may
  // have.
  TensorView output;
  Rank peer;          // the other rank; a receive may name kAnyRank
  std::uint32_t tag;  // messages of different tags do not wait for each other

  // Make a message of each kind.
  static Message send(ConstTensorView input, Rank peer, std::uint32_t tag = 0) {
    return {Kind::send, input, TensorView(nullptr, 0, input.dtype), peer, tag};
  }
  static Message recv(TensorView output, Rank peer, std::uint32_t tag = 0) {
    return {Kind::recv, ConstTensorView(nullptr, 0, output.dtype), output, peer, tag};
  }
};

}  // namespace v0
}  // namespace leeway
