// Interface of an operation towards the protocol. Through it the protocol fetches payload to send,
// hands over payload that came, and tells what happened.
#pragma once

#include <cstdint>
#include <span>

#include "base/bitmap.h"
#include "base/time.h"
#include "leeway/status.h"
#include "leeway/types.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"
#include "wire/code_grid.h"
#include "wire/packet.h"

namespace leeway::protocol {

using wire::FlowKind;

// Encoded bytes of one packet. They stay valid until the train that holds them was sent.
struct Payload {
  ByteSpan bytes;
  std::uint32_t crc = 0;  // crc32c(bytes); ignored unless EndpointConfig::sums_to()
};

// Result of accept() for a first copy of a packet.
enum class Acceptance : std::uint8_t {
  accepted,
  late,     // the packet's place was settled already: the packet is counted and not used
  refused,  // the payload does not have the planned length: the ranks disagree about the operation
};

// Endpoint calls these functions on the driving thread, and never calls one from inside another.
// Implementations may call Endpoint::release_chunks().
class RoundClient {
 public:
  virtual ~RoundClient() = default;

  // Return how the flow to / from `peer` is cut into packets. A grid without packets means that
  // there is no flow. Called once, when the round opens.
  virtual schedule::PacketGrid outgoing(FlowKind kind, Rank peer) const = 0;
  virtual schedule::PacketGrid incoming(FlowKind kind, Rank peer) const = 0;

  // Returns the packets that must come although the phase is lossy (Replica's age cap), or null if
  // there are none. Called when the round opens.
  virtual const Bitmap* required(FlowKind kind, Rank peer) const = 0;

  // Tells the length of a message, in elements, as its first datagram gave it. It is at most what
  // the receive has room for. incoming() may return a smaller grid from now on.
  virtual void on_length(std::uint64_t) {}

  // Returns the encoded payload of a packet, in the operation's memory or at the front of
  // `scratch`. `ahead` is the packet that will probably be asked for next (`index` itself if
  // unknown), so that the client may prefetch it.
  virtual Payload payload(FlowKind kind, Rank to, PacketIndex index, PacketIndex ahead,
                          MutableByteSpan scratch) = 0;

  // Hands over a first copy of a packet. The flow's weight is known by then.
  virtual Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload) = 0;

  // Encodes a parity of the packets to this receiver, as payload() does for a packet. This function
  // and the next three are called only if the phase is coded.
  virtual Payload parity(FlowKind, Rank, wire::ParityPlace, MutableByteSpan) { return {}; }
  // Stores a parity in the place of a missing packet. Returns false if the parity does not have the
  // planned length.
  virtual bool hold_parity(FlowKind, Rank, PacketIndex, ByteSpan) { return false; }
  // Returns the parity that lies in the place of a packet that has just come. The bytes stay valid
  // until the next call of parity(), hold_parity(), lift_parity() or recover().
  virtual ByteSpan lift_parity(FlowKind, Rank, PacketIndex) { return {}; }
  // Computes the missing packets of a code. Each place of the code holds a packet or a parity.
  // `last` is a parity that has just come and is not stored yet; its place in the code is
  // `last_at`. `last` is empty if a packet came last. Returns false if `last` does not have the
  // planned length.
  struct CodedPackets {
    std::uint32_t code = 0;
    std::span<const std::uint8_t> rows;  // as ParityLedger::Places
    std::uint32_t last_at = 0;
    ByteSpan last;
  };
  virtual bool recover(FlowKind, Rank, const CodedPackets&) { return false; }

  // Called when every flow into this phase is complete, given up by its delivery class, or cut by
  // the deadline.
  virtual void on_settled(FlowKind kind, Instant now) = 0;

  // Called once, when the caller may go on: its buffers are no longer read or written. The
  // operation failed if `status` is an error.
  virtual void on_done(const Status& status, Instant now) = 0;

  // Called when the round has left the protocol; the client may be reused.
  virtual void on_closed() = 0;
};

}  // namespace leeway::protocol
