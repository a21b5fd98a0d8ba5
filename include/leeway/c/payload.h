// C: payload sources and sinks, for a call whose elements are encoded, summed and decoded
// elsewhere. leeway/payload.h explains how such a call proceeds, which calls can be made so, and on
// which threads callbacks run.
#ifndef LEEWAY_C_PAYLOAD_H
#define LEEWAY_C_PAYLOAD_H

#include "leeway/c/codec.h"
#include "leeway/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The two halves of a call.
typedef int32_t leeway_payload_half;
// Values of leeway_payload_half.
enum {
  LEEWAY_PAYLOAD_REDUCE = 0,  // every rank contributes to the block of each owner
  LEEWAY_PAYLOAD_SPREAD = 1   // an owner's block goes to the others
};

// How the tensor of a call is cut, as this rank sees it.
typedef struct leeway_payload_layout leeway_payload_layout;
// All ranks' contributions to one chunk.
typedef struct leeway_payload_contributions leeway_payload_contributions;

// The unit of work: a run of packets of one block.
typedef struct leeway_payload_chunk {
  size_t size;               // bytes of this struct
  leeway_payload_half half;  // half of the call
  leeway_rank owner;         // rank that owns the block
  uint16_t reserved;         // 0
  uint32_t index;            // number of the chunk in the block
  uint32_t packets;          // number of packets in which the elements travel
  size_t first_element;      // offset in the block
  size_t elements;           // number of elements
  size_t bytes;              // total size of the packets, which are adjacent
  uint64_t position;         // position of the first element for keyed random bits
} leeway_payload_chunk;
// An empty chunk, for leeway_payload_chunk_at().
#define LEEWAY_PAYLOAD_CHUNK_INIT \
  { sizeof(leeway_payload_chunk), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// One rank's contribution to a chunk.
typedef struct leeway_payload_contribution {
  size_t size;          // bytes of this struct
  const void* data;     // encoded packets in landing memory; NULL for this rank's own elements
  const float* scales;  // factor in the sum, by packet; 0 if it did not arrive; valid in take only
  size_t scale_count;   // number of packets
  leeway_rank rank;     // rank that contributed
  uint16_t reserved;    // 0
  uint32_t reserved2;   // 0
} leeway_payload_contribution;
// An empty contribution, for leeway_payload_contribution_at().
#define LEEWAY_PAYLOAD_CONTRIBUTION_INIT \
  { sizeof(leeway_payload_contribution), NULL, NULL, 0, 0, 0, 0 }

// Encodes contributions to other ranks' blocks, and this rank's own block for the other ranks.
typedef struct leeway_payload_source {
  size_t size;            // bytes of this struct
  void* user;             // first argument of each callback
  int64_t poll_every_ns;  // period at which source and sink are polled; 0 = only when notified
  // Called once, at the start. The layout is valid during the call; leeway_payload_layout_copy()
  // keeps it. An error fails the operation before anything is sent.
  leeway_status (*begin)(void* user, const leeway_payload_layout* layout);
  // Returns the memory of the encoded chunk, chunk->bytes long, or NULL if it is not encoded yet.
  const void* (*encoded)(void* user, const leeway_payload_chunk* chunk);
} leeway_payload_source;
// An empty source; the program must set both callbacks.
#define LEEWAY_PAYLOAD_SOURCE_INIT \
  { sizeof(leeway_payload_source), NULL, 0, NULL, NULL }

// Decodes contributions and sums them.
typedef struct leeway_payload_sink {
  size_t size;  // bytes of this struct
  void* user;   // first argument of each callback
  // Gives the memory into which payload is received: leeway_payload_landing_bytes() bytes or more.
  leeway_status (*landing)(void* user, const leeway_payload_layout* layout, void** memory,
                           size_t* bytes);
  // Hands over a chunk with `count` contributions, in order of rank. `chunk` and `contributions`
  // are valid during the call.
  void (*take)(void* user, const leeway_payload_chunk* chunk,
               const leeway_payload_contributions* contributions, size_t count);
  // Returns a number other than 0 once the sink is done with the chunk.
  int32_t (*used)(void* user, const leeway_payload_chunk* chunk);
} leeway_payload_sink;
// An empty sink; the program must set all callbacks.
#define LEEWAY_PAYLOAD_SINK_INIT \
  { sizeof(leeway_payload_sink), NULL, NULL, NULL, NULL }

// Properties that all blocks of one half of a call share, and some properties of the whole call.
typedef struct leeway_payload_half_info {
  size_t size;               // bytes of this struct
  leeway_rank rank;          // this rank; keys the random bits of its encoding
  uint16_t reserved;         // 0
  int32_t ranks;             // number of ranks in the call
  leeway_data_type dtype;    // element type of the tensors
  int32_t op;                // leeway_op of the reduce half
  uint64_t seed;             // keys random bits
  uint32_t step;             // number of the call; keys random bits
  uint32_t packet_elements;  // elements in a full packet
  uint32_t chunk_packets;    // packets in a full chunk
  uint32_t block_count;      // one block for each owner; 0 if the call has no such half
  size_t header_bytes;       // bytes of header in each packet
  size_t block_elements;     // elements in a codec block
  size_t block_bytes;        // bytes of an encoded codec block
} leeway_payload_half_info;
// A struct of zeros, for leeway_payload_half_get().
#define LEEWAY_PAYLOAD_HALF_INFO_INIT \
  { sizeof(leeway_payload_half_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// The block of one owner.
typedef struct leeway_payload_block {
  size_t size;           // bytes of this struct
  size_t offset;         // index of the first element in the call's tensor
  size_t elements;       // 0 if none of it passes through this rank
  uint64_t position;     // position of the first element for keyed random bits
  uint32_t first_chunk;  // first chunk of the contributions to leave
  uint32_t chunks;       // number of chunks
} leeway_payload_block;
// An empty block, for leeway_payload_block_at().
#define LEEWAY_PAYLOAD_BLOCK_INIT \
  { sizeof(leeway_payload_block), 0, 0, 0, 0, 0 }

// Keeps a layout beyond the callback that received it.
LEEWAY_C_EXPORT leeway_status leeway_payload_layout_copy(const leeway_payload_layout* layout,
                                                         leeway_payload_layout** copy);
// Frees a copy.
LEEWAY_C_EXPORT void leeway_payload_layout_free(leeway_payload_layout* copy);
// Gives the properties of a half, and its codec, in which no setting is automatic. `codec` may be
// NULL.
LEEWAY_C_EXPORT leeway_status leeway_payload_half_get(const leeway_payload_layout* layout,
                                                      leeway_payload_half half,
                                                      leeway_payload_half_info* info,
                                                      leeway_codec_options* codec);
// Gives the block of `owner`.
LEEWAY_C_EXPORT leeway_status leeway_payload_block_at(const leeway_payload_layout* layout,
                                                      leeway_payload_half half, leeway_rank owner,
                                                      leeway_payload_block* block);
// Gives chunk `index` of a block, 0 .. chunks - 1.
LEEWAY_C_EXPORT leeway_status leeway_payload_chunk_at(const leeway_payload_layout* layout,
                                                      leeway_payload_half half, leeway_rank owner,
                                                      uint32_t index, leeway_payload_chunk* chunk);
// Minimum size of the landing memory in bytes; 0 for NULL.
LEEWAY_C_EXPORT size_t leeway_payload_landing_bytes(const leeway_payload_layout* layout);
// Gives contribution `index`, 0 .. count - 1.
LEEWAY_C_EXPORT leeway_status
leeway_payload_contribution_at(const leeway_payload_contributions* contributions, size_t index,
                               leeway_payload_contribution* contribution);

#ifdef __cplusplus
}
#endif

#endif
