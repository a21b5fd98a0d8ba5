// Payload sources and sinks: a call whose elements are encoded, summed and decoded elsewhere (by
// kernels of a GPU, say) while the library moves packets. It reads and writes no tensor then.
//
// How a call with both goes (CollectiveOptions::source and sink; the tensors' pointers are not
// followed and may be null or of a device):
//
//   1. Inside the call that starts it, begin() of the source and landing() of the sink. The layout
//   says which
//      elements make up which packet of which chunk, in which order chunks leave, and what keys the
//      random bits of codecs. All work for a GPU may be enqueued there, or after the call returns.
//   2. The source encodes chunk after chunk and says so by Communicator::notify_payload(), or lets
//      itself be polled. The library then asks encoded(), and sends what is ready. It waits for no
//      other chunk.
//   3. take() hands the sink a chunk of this rank's block with all contributions to it, and the
//      factors that make an unbiased sum of them. The sink sums elsewhere. used() says when.
//   4. all_reduce: the source is asked for this rank's reduced chunks, encoded for the others, in
//      the order in which all their contributions were handed to the sink. Chunks of other ranks'
//      blocks are handed to the sink, with one contribution each.
//   5. The Work is done when peers need nothing more of the source, and the sink has used all.
//
// Calls: all_reduce, reduce_scatter and reduce (contributions, and for all_reduce the spread of the
// result); all_gather, broadcast and gather (spread only). Every codec but automatic, every
// delivery class. Ranks that encode elsewhere and ranks that do not take part in one call: bytes
// are the same. kUnsupported: other calls, error feedback (residual) and control variates, which
// are for whoever encodes. The factor of premul_sum is applied by the source, and by the sink to
// the rank's own elements.
//
// Threads: begin() and landing() run in the call that starts the operation. encoded(), take() and
// used() run on whichever thread drives, one at a time. None may block, or call anything but
// notify_payload(). What they share with the threads that encode and decode is theirs to protect.
//
// Lifetime: source, sink, encoded chunks and landing memory stay until the Work is done. A resend
// reads an encoded chunk again, so it must not change. Where a Work fails, kernels that are still
// under way may touch the memory: it is the caller's, who waits for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/codec.h"
#include "leeway/export.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// The two halves of a call. In the reduce half every rank contributes to the block that a rank
// owns. In the spread half an owner's block goes to the others.
enum class PayloadHalf : std::uint8_t { reduce = 0, spread };
// "contribution to" or "block of", for messages.
LEEWAY_EXPORT const char* to_string(PayloadHalf half);

// The unit in which sources and sinks work: a run of packets of one block.
struct PayloadChunk {
  PayloadHalf half = PayloadHalf::reduce;  // of the call
  Rank owner = 0;                          // of the block
  std::uint32_t index = 0;                 // in the block
  std::size_t first_element = 0;           // in the block
  std::size_t elements = 0;                // how many
  std::uint32_t packets = 0;               // in which these travel
  std::size_t bytes = 0;                   // of all packets, one behind the other
  // Of the first element, in the tensor as keyed random bits count: element i of the chunk has
  // position + i. A multiple of 32.
  std::uint64_t position = 0;
};

// How a call is cut, on this rank. A value; the same arithmetic on every rank.
class LEEWAY_EXPORT PayloadLayout {
 public:
  // A block of one rank.
  struct Block {
    // Of the first element in the call's tensor: the input of the reduce half, the output of the
    // spread half (of gather: the root's).
    std::size_t offset = 0;
    std::size_t elements = 0;    // 0: nothing of it passes through this rank
    std::uint64_t position = 0;  // as PayloadChunk's
    // Contributions to this block leave in the order first_chunk, first_chunk + 1, ..., chunks - 1,
    // 0, ... A spread half's own block: 0.
    std::uint32_t first_chunk = 0;
  };
  // What all blocks of a half have in common. Each packet is encoded alone; all but the last of a
  // block are full.
  struct Half {
    CodecOptions codec;                 // as encode_packet() takes it; never Codec::automatic
    std::uint32_t packet_elements = 0;  // of a full packet
    std::uint32_t chunk_packets = 0;    // of a full chunk
    std::size_t header_bytes = 0;       // of a packet
    std::size_t block_elements = 1;     // of the codec's blocks; a shorter one takes as much room
    std::size_t block_bytes = 0;        // of such a block, encoded
    std::vector<Block> blocks;          // by owner; empty: the call has no such half

    // Encoded length of a packet of so many elements.
    std::size_t packet_bytes(std::size_t elements) const;
    // Packets and encoded length of a block.
    std::uint32_t packets(Rank owner) const;
    std::size_t bytes(Rank owner) const;
  };

  Rank rank = 0;                   // this one, which keys the random bits of what it encodes
  int size = 1;                    // ranks of the call
  DataType dtype = DataType::f32;  // of the tensors
  // Of the reduce half. premul_sum is planned as sum: the factor is the source's and the sink's.
  ReduceOp op = ReduceOp::sum;
  std::uint64_t seed = 0;  // keys random bits, with `step`, the encoding rank, and positions
  std::uint32_t step = 0;  // of the call; differs from call to call
  Half reduce;             // contributions of every rank to every rank's block
  Half spread;             // every rank's block to the others

  // One of the two.
  const Half& half(PayloadHalf which) const {
    return which == PayloadHalf::reduce ? reduce : spread;
  }
  // Chunks of a block, and one of them: index < chunks().
  std::uint32_t chunks(PayloadHalf which, Rank owner) const;
  PayloadChunk chunk(PayloadHalf which, Rank owner, std::uint32_t index) const;
  // Contributions to this rank's block and other ranks' blocks: what take() refers to.
  std::size_t landing_bytes() const;
};

// Where an encoded chunk lies.
struct EncodedChunk {
  const std::byte* data = nullptr;  // null: it is not encoded yet
  std::size_t bytes = 0;  // PayloadChunk::bytes, else the call fails with kInvalidArgument
};

// Encodes: contributions to every other rank's block, and this rank's own block for the others.
class LEEWAY_EXPORT PayloadSource {
 public:
  virtual ~PayloadSource() = default;

  // An error fails the call before anything is sent. The layout is to be copied.
  virtual Status begin(const PayloadLayout& layout) = 0;

  // Asked again until it is ready, in the order in which the chunks of one block leave; then no
  // more. A chunk that is not ready at the deadline fails the call with kDeadlineExceeded, which
  // names it. Under lossy classes peers do without it.
  virtual EncodedChunk encoded(const PayloadChunk& chunk) = 0;

  // How often source and sink are asked where nobody calls notify_payload(): flags that a device
  // writes, say. 0: only then, and when packets arrive.
  virtual Duration poll_every() const { return Duration{0}; }
};

// One rank's contribution to a chunk.
struct PayloadContribution {
  Rank rank = 0;  // whose it is
  // Encoded packets, one behind the other, in landing memory, where the chunks of a block lie one
  // behind the other, too. Null: this rank's own elements, which are not encoded, as they lie in
  // its tensor.
  const std::byte* data = nullptr;
  // By packet of the chunk: the factor of the contribution in the sum. 0: it did not arrive, or
  // counts for nothing, and its bytes have no meaning. Where the operation is not a sum of floats,
  // factors are 1, and an average (of integers and float64) is still to be divided. Valid during
  // take() only.
  std::span<const float> scales;
};

// Decodes and sums.
class LEEWAY_EXPORT PayloadSink {
 public:
  virtual ~PayloadSink() = default;

  // The memory that payload lands in: layout.landing_bytes() or more, at any address. Asked once,
  // after the source's begin(). An error fails the call before anything is sent.
  virtual Result<MutableByteSpan> landing(const PayloadLayout& layout) = 0;

  // Reduce half: this rank's block, contributions by rising rank. To get the bits of other ranks,
  // sum in this order, rounding each product and each sum; rotated codecs: encoded contributions
  // first, then rotate back, then the own. The elements that all ranks are to hold are those that
  // decode from the encoded reduced chunk, where it is spread to anybody.
  // Spread half: the owner's block, with its one contribution. Packets with factor 0 did not arrive
  // by the deadline: under an exact spread they become zeros, under a lossy one they stay.
  virtual void take(const PayloadChunk& chunk,
                    std::span<const PayloadContribution> contributions) = 0;

  // Whether the sink is done with the chunk, and the result of a reduce half stands where it
  // belongs. Asked in the order of take(), again until true. It has the call's deadline again, from
  // the last take() on.
  virtual bool used(const PayloadChunk& chunk) = 0;
};

}  // namespace v0
}  // namespace leeway
