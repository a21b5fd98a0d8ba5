// Sealed messages between two processes about the path between them (WIRE 9) and about their keys
// (WIRE 8.5). Communicators never see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/network_address.h"
#include "keys/derive.h"
#include "leeway/transport.h"
#include "leeway/types.h"

namespace leeway::seal {

struct PathMessage {
  enum class Kind : std::uint8_t {
    challenge = 1,    // asks whether the receiver is there; answered to its source
    answer = 2,       // with the challenge's token
    whereabouts = 4,  // tells where another process is: `token` names it, `seen` is its address
    keep_alive = 3,   // keeps mappings of address translators on the way alive
  };

  Kind kind = Kind::keep_alive;
  std::uint64_t token = 0;
  // The receiver's address as the sender sees it, to which this message goes.
  NetworkAddress seen;

  friend bool operator==(const PathMessage&, const PathMessage&) = default;
};

inline constexpr std::size_t kPathMessageBytesMax = 28;

// Returns how many bytes of `out` it takes.
std::size_t encode_path_message(const PathMessage& message, MutableByteSpan out);
// Returns nullopt if the bytes are no path message.
std::optional<PathMessage> decode_path_message(ByteSpan bytes);

// The head in front of a sealed datagram that goes through a third process (WIRE 9.8). On each of
// the two hops, head and datagram are sealed together. The datagram itself stays sealed from end to
// end.
struct RelayHead {
  enum class Kind : std::uint8_t {
    onward = 5,   // to be forwarded to the process `name`
    relayed = 6,  // forwarded, from the process `name`
  };

  Kind kind = Kind::onward;
  Ecn ecn = Ecn::none;     // if relayed: the mark with which it came over the first hop
  std::uint64_t name = 0;  // the first bytes of a process' public half

  friend bool operator==(const RelayHead&, const RelayHead&) = default;
};

inline constexpr std::size_t kRelayHeadBytes = 12;

// `out` must have at least kRelayHeadBytes.
void encode_relay_head(const RelayHead& head, MutableByteSpan out);
// Returns nullopt if the bytes are no relayed datagram.
std::optional<RelayHead> decode_relay_head(ByteSpan bytes);

// A relay sends this message to a process if it has not forwarded all of its datagrams (WIRE 9.10).
struct ShareMessage {
  // Number of datagrams from this message's receiver that exceeded its share, since the two
  // processes met, modulo 2^32.
  std::uint32_t refused = 0;
  // Rate at which the relay forwards for the receiver from now on, seals of the hop included.
  std::uint64_t bytes_per_second = 0;

  friend bool operator==(const ShareMessage&, const ShareMessage&) = default;
};

inline constexpr std::size_t kShareMessageBytes = 16;

// `out` must have at least kShareMessageBytes.
void encode_share_message(const ShareMessage& message, MutableByteSpan out);
// Returns nullopt if the bytes are no share message.
std::optional<ShareMessage> decode_share_message(ByteSpan bytes);

// Message by which two processes change to the next key phase (association.h).
struct ExchangeMessage {
  enum class Kind : std::uint8_t {
    offer = 7,       // from the leader: its half for the phase
    accept = 8,      // with the other half; its sender opens datagrams of the phase already
    confirm = 9,     // sealed in the phase: asks whether the receiver is there, too
    confirmed = 10,  // sealed in the phase: answers that it is
  };

  Kind kind = Kind::confirm;
  std::uint32_t phase = 0;  // modulo 2^32; only offer and accept have this and `half`
  keys::Key half{};

  friend bool operator==(const ExchangeMessage&, const ExchangeMessage&) = default;
};

inline constexpr std::size_t kExchangeMessageBytesMax = 40;

// Returns how many bytes of `out` it takes.
std::size_t encode_exchange_message(const ExchangeMessage& message, MutableByteSpan out);
// Returns nullopt if the bytes are no message about keys.
std::optional<ExchangeMessage> decode_exchange_message(ByteSpan bytes);

}  // namespace leeway::seal
