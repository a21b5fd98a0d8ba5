// Messages between two ranks: what a group of sends and receives consists of.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// One send or receive of Communicator::exchange().
struct Message {
  // Which of the two.
  enum class Kind : std::uint8_t {
    send = 0,
    recv,
  };
  // Number of kinds.
  static constexpr int kKinds = 2;
  Kind kind;              // which end of the message this rank is
  ConstTensorView input;  // of a send
  TensorView output;      // of a receive: count is the most it takes
  Rank peer;              // the other end; a receive may say kAnyRank
  std::uint32_t tag;      // messages of different tags do not wait for each other

  // The two kinds, with what each of them needs.
  static Message send(ConstTensorView input, Rank peer, std::uint32_t tag = 0) {
    return {Kind::send, input, TensorView(nullptr, 0, input.dtype), peer, tag};
  }
  static Message recv(TensorView output, Rank peer, std::uint32_t tag = 0) {
    return {Kind::recv, ConstTensorView(nullptr, 0, output.dtype), output, peer, tag};
  }
};

}  // namespace v0
}  // namespace leeway
