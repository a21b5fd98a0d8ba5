// Payload sources and sinks: a call whose elements are encoded, summed and decoded elsewhere (by
// kernels of a GPU, say) while the library moves packets. The library then reads and writes no
// tensor.
//
// A call with a source and a sink (CollectiveOptions) goes as follows. The tensors' pointers are
// not followed: they may be null or point to device memory.
//
//   1. The call that starts the operation calls begin() of the source and landing() of the sink.
//      The layout says which elements make up which packet of which chunk, in which order chunks
//      leave, and what keys the random bits of codecs. All work for a GPU may be enqueued in
//      begin() and landing(), or after the call returns.
//   2. The source encodes chunk after chunk and says so by Communicator::notify_payload(), or is
//      polled (poll_every()). The library then asks encoded(), and sends the chunks that are ready.
//      It does not hold one chunk back for another.
//   3. take() hands the sink a chunk of this rank's block with all contributions to it, and the
//      factors that make an unbiased sum of them. The sink sums elsewhere. used() says when it is
//      done.
//   4. In an all_reduce the source is then asked for this rank's reduced chunks, encoded for the
//      other ranks. It is asked for them in the order in which take() got their contributions.
//      Chunks of other ranks' blocks are handed to the sink, with one contribution each.
//   5. The Work is done when peers need nothing more of the source, and the sink has used all.
//
// Sources and sinks work in all_reduce, reduce_scatter and reduce (contributions, and for
// all_reduce the spread of the result), and in all_gather, broadcast and gather (spread only). They
// work with every codec but automatic, and in every delivery class. Ranks with and without a source
// and sink can take part in one call, because the bytes are the same. Only where calls go by sites
// or are cut into slices for lanes (Options::site, Options::lanes), either all ranks or no rank
// must have a source and a sink. Other operations return kUnsupported. Calls with error feedback
// (residual) or a control variate do so, too: both are left to the code that encodes. The source
// applies the factor of premul_sum; the sink applies it to the rank's own elements.
//
// Threads: begin() and landing() run in the call that starts the operation. encoded(), take() and
// used() run on the thread that drives the communicator at the time, one at a time. None may block,
// or call anything but notify_payload(). An implementation must protect the data that these
// functions share with the threads that encode and decode.
//
// Lifetime: source, sink, encoded chunks and landing memory stay until the Work is done. A resend
// reads an encoded chunk again, so it must not change. After a Work failed, kernels that still run
// may touch the memory; the caller must wait for the kernels before freeing the memory.
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
// owns. In the spread half an owner's block goes to the other ranks.
enum class PayloadHalf : std::uint8_t { reduce = 0, spread };
// Returns "contribution to" or "block of", for error texts.
LEEWAY_EXPORT const char* to_string(PayloadHalf half);

// The unit in which sources and sinks work: a run of packets of one block.
struct PayloadChunk {
  PayloadHalf half = PayloadHalf::reduce;  // half of the call
  Rank owner = 0;                          // rank that owns the block
  std::uint32_t index = 0;                 // number of the chunk in the block
  std::size_t first_element = 0;           // offset in the block
  std::size_t elements = 0;                // number of elements
  std::uint32_t packets = 0;               // number of packets in which they travel
  std::size_t bytes = 0;                   // total size of the packets, which are adjacent
  // Number of the first element for keyed random bits, a multiple of 32: element i of the chunk has
  // number position + i.
  std::uint64_t position = 0;
};

// How the tensor of a call is cut, as this rank sees it. Every rank computes it by the same
// arithmetic.
class LEEWAY_EXPORT PayloadLayout {
 public:
  // A block of one rank.
  struct Block {
    // Offset of the block's first element in the call's tensor: the input for the reduce half, the
    // output for the spread half (for gather: the root's output).
    std::size_t offset = 0;
    std::size_t elements = 0;    // 0 if none of the block passes through this rank
    std::uint64_t position = 0;  // like PayloadChunk::position
    // Contributions to this block leave in the order first_chunk, first_chunk + 1, ..., chunks - 1,
    // 0, ... first_chunk is 0 for this rank's own block in a spread half.
    std::uint32_t first_chunk = 0;
  };
  // Properties that all blocks of a half share. Each packet is encoded by itself; all packets of a
  // block but the last are full.
  struct Half {
    CodecOptions codec;                 // as encode_packet() takes it; never Codec::automatic
    std::uint32_t packet_elements = 0;  // elements in a full packet
    std::uint32_t chunk_packets = 0;    // packets in a full chunk
    std::size_t header_bytes = 0;       // bytes of header in each packet
    std::size_t block_elements = 1;  // elements in a codec block; a shorter one takes as many bytes
    std::size_t block_bytes = 0;     // bytes of an encoded codec block
    std::vector<Block> blocks;       // by owner; empty if the call has no such half

    // Encoded length of a packet with this number of elements.
    std::size_t packet_bytes(std::size_t elements) const;
    // Number of packets in the owner's block, and the block's encoded length.
    std::uint32_t packets(Rank owner) const;
    std::size_t bytes(Rank owner) const;
  };

  Rank rank = 0;                   // this rank; keys the random bits of its encoding
  int size = 1;                    // number of ranks in the call
  DataType dtype = DataType::f32;  // element type of the tensors
  // Operation of the reduce half. premul_sum is planned as sum: source and sink apply the factor.
  ReduceOp op = ReduceOp::sum;
  std::uint64_t seed = 0;  // keys random bits, with `step`, the encoding rank, and positions
  std::uint32_t step = 0;  // number of the call; differs from call to call
  Half reduce;             // contributions of every rank to every rank's block
  Half spread;             // every rank's block, sent to the others

  // The half that `which` names.
  const Half& half(PayloadHalf which) const {
    return which == PayloadHalf::reduce ? reduce : spread;
  }
  // Number of chunks in a block, and one of these chunks: index < chunks().
  std::uint32_t chunks(PayloadHalf which, Rank owner) const;
  PayloadChunk chunk(PayloadHalf which, Rank owner, std::uint32_t index) const;
  // Bytes of landing memory, for contributions to this rank's block and for other ranks' blocks.
  // PayloadContribution::data points into it.
  std::size_t landing_bytes() const;
};

// Memory of an encoded chunk.
struct EncodedChunk {
  const std::byte* data = nullptr;  // the encoded packets, or null if they are not ready
  std::size_t bytes = 0;  // PayloadChunk::bytes, else the call fails with kInvalidArgument
};

// Encodes contributions to every other rank's block, and this rank's own block for the other ranks.
// For the order of calls see the head of this file.
class LEEWAY_EXPORT PayloadSource {
 public:
  virtual ~PayloadSource() = default;

  // Called once, at the start. Copy the layout: it is valid only until begin() returns. An error
  // fails the operation before anything is sent.
  virtual Status begin(const PayloadLayout& layout) = 0;

  // Returns the memory of `chunk`, or null data if the chunk is not ready. Called again for the
  // same chunk until it is ready, and not after that. Chunks of one block are asked for in the
  // order in which they leave. A chunk that is not ready at the deadline fails the call with
  // kDeadlineExceeded, which names the chunk. Under lossy delivery, peers do without the chunk.
  virtual EncodedChunk encoded(const PayloadChunk& chunk) = 0;

  // Period at which source and sink are polled, for callers that cannot call notify_payload(), such
  // as a device that writes flags. With 0, source and sink are asked only upon notify_payload() and
  // when packets arrive.
  virtual Duration poll_every() const { return Duration{0}; }
};

// One rank's contribution to a chunk.
struct PayloadContribution {
  Rank rank = 0;  // rank that contributed
  // Encoded packets, adjacent, in landing memory. The chunks of a block are adjacent there, too.
  // `data` is null for this rank's own elements, which are not encoded, and lie in its tensor.
  const std::byte* data = nullptr;
  // Factor of the contribution in the sum, for each packet of the chunk. It is 0 if the packet did
  // not arrive or does not count; its bytes then have no meaning. If the operation is not a sum of
  // floats, factors are 1, and for an average (of integers and float64) the sink must still divide.
  // Valid during take() only.
  std::span<const float> scales;
};

// Decodes contributions and sums them. For the order of calls see the head of this file.
class LEEWAY_EXPORT PayloadSink {
 public:
  virtual ~PayloadSink() = default;

  // Returns the memory in which payload lands: layout.landing_bytes() or more, at any address.
  // Called once, after the source's begin(). An error fails the call before anything is sent. The
  // other ranks' calls then fail with kMismatch.
  virtual Result<MutableByteSpan> landing(const PayloadLayout& layout) = 0;

  // Hands over a chunk. In the reduce half it belongs to this rank's block, and contributions come
  // by rising rank. To get the same bits as other ranks, sum in this order, rounding each product
  // and each sum. For rotated codecs sum encoded contributions first, then rotate back, then add
  // this rank's own contribution. If the reduced chunk is spread, all ranks must hold the elements
  // that decode from its encoded form.
  //
  // In the spread half the chunk belongs to the owner's block, with one contribution. Packets with
  // factor 0 did not arrive by the deadline: under an exact spread their elements become zeros,
  // under a lossy spread they stay as they were.
  virtual void take(const PayloadChunk& chunk,
                    std::span<const PayloadContribution> contributions) = 0;

  // Returns true if the sink is done with the chunk and, in the reduce half, the result is in
  // place. Called for chunks in the order of take(), for each chunk until it returns true. From the
  // last take() on, the sink has the length of the call's deadline once more.
  virtual bool used(const PayloadChunk& chunk) = 0;
};

}  // namespace v0
}  // namespace leeway
