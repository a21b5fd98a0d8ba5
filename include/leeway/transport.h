// The interface of a datagram transport, for Communicator::create(options, transport).
//
// A transport moves whole datagrams between the ranks of one communicator. It may lose, duplicate
// and reorder them. It makes no protocol decision: no retransmission, no acknowledgement, no
// pacing. Leeway does all of this above the transport.
//
// What a transport must promise:
//   * It is connected when it is handed over: it knows how to reach all other ranks, and which of
//     them a datagram came from. Leeway never tells it addresses.
//   * A datagram arrives whole or not at all. Its bytes may arrive damaged only if limits().intact
//     is false; Leeway then detects damage by checksums.
//   * send() and receive() do not block. wait() sleeps, and a datagram that arrives ends the sleep.
//     A transport whose wait() sleeps through arrivals makes calls slow or lets them time out.
//   * Within one pair of ranks most datagrams arrive in the order they were sent. Leeway repairs
//     reordering, but that costs time.
//
// Limits: datagrams of 512 to 32,768 bytes (limits().datagram_bytes_max), and trains (batches, as
// in GSO) of at least 65,507 bytes, 64 datagrams and 256 slices. All ranks use the smallest
// datagram size of any rank.
//
// Threads: the communicator calls the functions of a transport from one thread at a time, though
// not always the same one. Only wake() may be called from any thread at any time, also while
// another function runs. Implementations should not allocate after construction.
//
// Ownership: the communicator owns the transport, and destroys it in its own destructor after the
// last call.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// A piece of memory to be gathered into a train. It stays valid and unchanged while the train is
// borrowed(); if send() copies, until send() returns.
struct Slice {
  const std::byte* data = nullptr;  // the first byte
  std::size_t bytes = 0;            // number of bytes; may be 0
};

// A batch of consecutive datagrams to one rank (a GSO batch: with UDP_SEGMENT it is one system
// call). The slices' bytes, laid end to end, are cut every `segment_bytes`; only the last datagram
// may be shorter. Slices may end anywhere, also inside a datagram.
struct Train {
  // The receiver, or kEveryRank (all ranks but the sender) if limits().multicast.
  Rank to = kNoRank;
  std::size_t segment_bytes = 0;  // size of every datagram but the last
  std::size_t total_bytes = 0;    // sum of the slices
  std::span<const Slice> slices;  // the bytes to send, in order
};

// The ECN field of the IP header (RFC 3168): whether the sender reacts to congestion marks, and
// whether a queue on the way marked the datagram instead of dropping it.
enum class Ecn : std::uint8_t { none = 0, ect1 = 1, ect0 = 2, ce = 3 };

// One datagram that arrived. The bytes may be overwritten by the caller (decryption, fault
// injection) and are valid until the next receive() call on the same transport.
struct Received {
  // The sender, 0 .. size-1. Datagrams from unknown addresses are counted (from_strangers) and
  // never returned.
  Rank from = kNoRank;
  MutableByteSpan bytes;  // the whole datagram
  Ecn ecn = Ecn::none;    // `none` also if the transport does not know
};

// Limits and abilities of a transport; constant from the first send() on.
struct TransportLimits {
  std::size_t datagram_bytes_max = 0;   // largest datagram that every peer can receive
  std::size_t train_bytes_max = 0;      // largest total_bytes of a train
  std::size_t train_datagrams_max = 0;  // most datagrams in a train
  std::size_t train_slices_max = 0;     // most slices in a train
  // Payload bytes, from all senders together, that are certain to be queued for this rank before
  // anything is dropped. Senders keep less than that in flight. There must be room for at least one
  // datagram of each peer.
  std::size_t receive_buffer_bytes = 0;
  // True if the transport can send to kEveryRank. Leeway finds out which ranks receive such trains.
  bool multicast = false;
  // True if bytes never arrive damaged, so that payloads need no checksum by Leeway.
  bool intact = false;
};

// Counts since construction. A transport fills in those it knows; Communicator::counters() shows
// them.
struct TransportCounters {
  std::uint64_t datagrams_sent = 0;      // datagrams given to the system
  std::uint64_t datagrams_received = 0;  // datagrams returned by receive()
  std::uint64_t bytes_sent = 0;      // bytes of datagrams_sent, without the headers of the network
  std::uint64_t bytes_received = 0;  // bytes of datagrams_received, likewise
  std::uint64_t send_calls = 0;      // send calls to the system or the device
  std::uint64_t receive_calls = 0;   // receive calls to the system or the device
  std::uint64_t from_strangers = 0;  // datagrams of unknown addresses, dropped
  std::uint64_t oversized = 0;       // datagrams that the kernel truncated, dropped
  // Trains dropped after an error; without UDP_SEGMENT, datagrams
  std::uint64_t send_errors = 0;
  // Datagrams copied into the transport's own memory before the device could read them
  std::uint64_t datagrams_copied = 0;
  std::uint64_t kernel_drops = 0;  // receive-queue overflows, if the system tells them (SO_MEMINFO)
  // Datagrams of strangers that the kernel's filter dropped before any queue. Only sealed UDP
  // sockets have the filter (WIRE 8.7).
  std::uint64_t junk = 0;
};

// The interface of a transport; the head of this file says what an implementation promises.
class LEEWAY_EXPORT DatagramTransport {
 public:
  DatagramTransport() = default;
  DatagramTransport(const DatagramTransport&) = delete;
  DatagramTransport& operator=(const DatagramTransport&) = delete;
  virtual ~DatagramTransport() = default;

  // Name for people, 1 .. 64 characters. Ranks whose transports have different names do not form a
  // group.
  virtual std::string_view name() const = 0;
  // Limits and abilities; constant from the first send() on.
  virtual const TransportLimits& limits() const = 0;

  // Announces memory from which trains will be gathered again and again. A transport whose device
  // reads only registered memory (RDMA) registers it once and so avoids a copy each time; other
  // transports do nothing. forget_memory() gets the same span, before the memory is freed. After an
  // error the memory is copied as before; the text says why.
  virtual Status register_memory(ByteSpan memory) {
    (void)memory;
    return Status();
  }
  virtual void forget_memory(ByteSpan memory) { (void)memory; }

  // Sends trains in order, without blocking, and returns how many it took. Fewer than given means
  // that there is no room now: Leeway calls again after wait(). A train that fails for any other
  // reason counts as taken and as lost.
  virtual std::size_t send(std::span<const Train> trains) = 0;

  // Number of taken trains whose memory is still being read and must not change. These are always
  // the trains that were taken last. 0 if send() copies. Each call determines the number anew.
  virtual std::size_t borrowed() { return 0; }

  // Fills `out` with datagrams that are here now, without blocking, and returns how many. Datagrams
  // of the previous call become invalid.
  virtual std::size_t receive(std::span<Received> out) = 0;

  // Blocks until the first of these: a datagram is here, the transport can send again after a
  // send() that took too few trains, borrowed() fell, status() changed, wake() was called, or
  // `timeout` passed. Spurious returns are allowed.
  virtual void wait(Duration timeout) = 0;

  // Makes a wait() in progress, or the next one, return at once. May be called from any thread.
  // Never blocks.
  virtual void wake() = 0;

  // Counts since construction.
  virtual TransportCounters counters() const = 0;

  // Returns an error when the transport can never work again, for example because its device is
  // gone. The text names the device and what to do; open calls fail with this error. From then on
  // send() takes and drops everything, nothing is borrowed, and nothing arrives. The result is a
  // reference, valid as long as the transport, because status() is called after every step.
  virtual const Status& status() const {
    static const Status ok;
    return ok;
  }

  // Limits for trains to and from one peer, if better than limits(). Leeway uses only `intact`,
  // which may change between calls while the transport runs.
  virtual const TransportLimits& limits_to(Rank peer) const {
    (void)peer;
    return limits();
  }
};

}  // namespace v0
}  // namespace leeway
