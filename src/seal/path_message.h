// What two processes say to each other about the path between them, sealed, and below everything
// else that they say (WIRE 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/network_address.h"
#include "leeway/types.h"

namespace leeway::seal {

struct PathMessage {
  enum class Kind : std::uint8_t {
    challenge = 1,    // is the receiver at this address? It answers to where this came from
    answer = 2,       // with the challenge's token
    whereabouts = 4,  // of another process: `token` is its name, `seen` where it was found
    keep_alive = 3,   // nothing but a sign of life, for what translates addresses between the two
  };

  Kind kind = Kind::keep_alive;
  std::uint64_t token = 0;
  // Where the sender sees the receiver: the address that this message goes to.
  NetworkAddress seen;

  friend bool operator==(const PathMessage&, const PathMessage&) = default;
};

inline constexpr std::size_t kPathMessageBytesMax = 28;

// Gives how many bytes of `out` it takes.
std::size_t encode_path_message(const PathMessage& message, MutableByteSpan out);
// Nothing: of another length or kind.
std::optional<PathMessage> decode_path_message(ByteSpan bytes);

}  // namespace leeway::seal
