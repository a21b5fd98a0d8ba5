// Plug-in interface of a datagram transport.
//
// A transport moves whole datagrams between ranks, unreliably, and makes no protocol decision: no
// retransmission, no acknowledgement, no pacing. It is driven by one thread at a time (the runtime
// serialises); only wake() may be called from any thread. It never allocates after construction.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {

// A piece of memory to be gathered into a train; stays valid until the train is no longer
// borrowed().
struct Slice {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// Consecutive datagrams to one rank. The slices' bytes, laid end to end, are cut every
// `segment_bytes`; only the last datagram may be shorter. With UDP_SEGMENT a train is one system
// call.
struct Train {
  Rank to = kNoRank;              // or kEveryRank, where limits().multicast
  std::size_t segment_bytes = 0;  // size of every datagram but the last
  std::size_t total_bytes = 0;    // sum of the slices
  std::span<const Slice> slices;
};

// One datagram that arrived. The bytes may be overwritten by the caller (decryption, fault
// injection) and are valid until the next receive() call on the same transport.
struct Received {
  // By source address; datagrams of unknown addresses are counted and never shown
  Rank from = kNoRank;
  MutableByteSpan bytes;
};

struct TransportLimits {
  std::size_t datagram_bytes_max = 0;   // largest datagram every peer can be sent
  std::size_t train_bytes_max = 0;      // largest total_bytes of a train
  std::size_t train_datagrams_max = 0;  // most datagrams in a train
  std::size_t train_slices_max = 0;     // most slices in a train
  // Payload bytes the system surely queues for us before it drops
  std::size_t receive_buffer_bytes = 0;
  // Trains to kEveryRank are taken; nothing says that they arrive anywhere
  bool multicast = false;
  // Bytes that arrive are those sent: payloads need no checksum of ours
  bool intact = false;
};

struct TransportCounters {
  std::uint64_t datagrams_sent = 0;
  std::uint64_t datagrams_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t from_strangers = 0;  // datagrams of unknown addresses, dropped
  std::uint64_t oversized = 0;       // truncated by the kernel, dropped
  // Trains (without UDP_SEGMENT: datagrams) dropped after an error
  std::uint64_t send_errors = 0;
  // Laid together in memory of the transport's own before the device could have them
  std::uint64_t datagrams_copied = 0;
  std::uint64_t kernel_drops = 0;  // receive-queue overflows where the system tells (SO_MEMINFO)
};

class LEEWAY_EXPORT DatagramTransport {
 public:
  virtual ~DatagramTransport() = default;

  virtual std::string_view name() const = 0;
  virtual const TransportLimits& limits() const = 0;  // final before the first send()

  // Memory from which trains will be gathered again and again. A transport whose device reads only
  // registered memory (RDMA) registers it once, where it would copy each time otherwise; others do
  // nothing. forget_memory() takes the same span, before the memory goes. An error: it is copied as
  // before, and the text says why.
  virtual Status register_memory(ByteSpan memory) {
    (void)memory;
    return Status();
  }
  virtual void forget_memory(ByteSpan memory) { (void)memory; }

  // Sends trains in order; returns how many were taken. Fewer than given means the system is full:
  // call again after wait(). A train that fails for any other reason counts as taken and as lost.
  virtual std::size_t send(std::span<const Train> trains) = 0;

  // How many of the trains taken are still being read: always the latest ones. Their memory must
  // not change. 0 where send() copies; else it is counted anew by each call, and falls without
  // others.
  virtual std::size_t borrowed() { return 0; }

  // Fills `out` with datagrams that are here now, without blocking; returns how many.
  virtual std::size_t receive(std::span<Received> out) = 0;

  // Blocks until a datagram is here, the transport can send again after a short send(), borrowed()
  // fell, status() changed, wake() was called, or `timeout` passed, whichever is first. Spurious
  // returns are allowed.
  virtual void wait(Duration timeout) = 0;

  // Makes a wait() in progress, or the next one, return at once. Any thread.
  virtual void wake() = 0;

  virtual TransportCounters counters() const = 0;

  // Not ok when the transport can never work again, its device being gone, say: the text names it
  // and what to do. From then on send() takes and drops everything, nothing is borrowed, and
  // nothing arrives.
  virtual Status status() const { return Status(); }
};

}  // namespace leeway
