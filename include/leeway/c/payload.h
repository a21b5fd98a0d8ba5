// C: payload sources and sinks: a call whose elements are encoded, summed and decoded elsewhere.
// The twin of leeway/payload.h, which says how such a call goes, for which calls, and on which
// threads.
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
  LEEWAY_PAYLOAD_REDUCE = 0,  // every rank contributes to the block that a rank owns
  LEEWAY_PAYLOAD_SPREAD = 1   // an owner's block goes to the others
};

// How a call is cut, on this rank.
typedef struct leeway_payload_layout leeway_payload_layout;
// All ranks' contributions to one chunk.
typedef struct leeway_payload_contributions leeway_payload_contributions;

// The unit of work: a run of packets of one block.
typedef struct leeway_payload_chunk {
  size_t size;               // of this struct
  leeway_payload_half half;  // of the call
  leeway_rank owner;         // of the block
  uint16_t reserved;         // 0
  uint32_t index;            // in the block
  uint32_t packets;          // in which the elements travel
  size_t first_element;      // in the block
  size_t elements;           // how many
  size_t bytes;              // of all packets, one behind the other
  uint64_t position;         // of the first element, as keyed random bits count
} leeway_payload_chunk;
// For leeway_payload_chunk_at().
#define LEEWAY_PAYLOAD_CHUNK_INIT \
  { sizeof(leeway_payload_chunk), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// One rank's contribution to a chunk.
typedef struct leeway_payload_contribution {
  size_t size;          // of this struct
  const void* data;     // encoded packets in landing memory; NULL: this rank's own elements
  const float* scales;  // by packet: the factor in the sum, 0: not arrived; valid in take only
  size_t scale_count;   // packets
  leeway_rank rank;     // whose it is
  uint16_t reserved;    // 0
  uint32_t reserved2;   // 0
} leeway_payload_contribution;
// For leeway_payload_contribution_at().
#define LEEWAY_PAYLOAD_CONTRIBUTION_INIT \
  { sizeof(leeway_payload_contribution), NULL, NULL, 0, 0, 0, 0 }

// Encodes: contributions to other ranks' blocks, and this rank's own block for the others.
typedef struct leeway_payload_source {
  size_t size;            // of this struct
  void* user;             // first argument of each callback
  int64_t poll_every_ns;  // how often source and sink are asked without a notice; 0: never
  // The layout is valid during the call; leeway_payload_layout_copy() keeps it. An error fails the
  // operation before anything is sent.
  leeway_status (*begin)(void* user, const leeway_payload_layout* layout);
  // Where the encoded chunk lies, chunk->bytes long; NULL: it is not encoded yet.
  const void* (*encoded)(void* user, const leeway_payload_chunk* chunk);
} leeway_payload_source;
// Without callbacks: both must be given.
#define LEEWAY_PAYLOAD_SOURCE_INIT \
  { sizeof(leeway_payload_source), NULL, 0, NULL, NULL }

// Decodes and sums.
typedef struct leeway_payload_sink {
  size_t size;  // of this struct
  void* user;   // first argument of each callback
  // The memory that payload lands in: leeway_payload_landing_bytes() or more.
  leeway_status (*landing)(void* user, const leeway_payload_layout* layout, void** memory,
                           size_t* bytes);
  // A chunk with `count` contributions, by rising rank, valid during the call.
  void (*take)(void* user, const leeway_payload_chunk* chunk,
               const leeway_payload_contributions* contributions, size_t count);
  // Not 0 once the sink is done with the chunk.
  int32_t (*used)(void* user, const leeway_payload_chunk* chunk);
} leeway_payload_sink;
// Without callbacks: all must be given.
#define LEEWAY_PAYLOAD_SINK_INIT \
  { sizeof(leeway_payload_sink), NULL, NULL, NULL, NULL }

// What a half of the call has in common, and what it says of the call.
typedef struct leeway_payload_half_info {
  size_t size;               // of this struct
  leeway_rank rank;          // this one, which keys the random bits of what it encodes
  uint16_t reserved;         // 0
  int32_t ranks;             // of the call
  leeway_data_type dtype;    // of the tensors
  int32_t op;                // leeway_op of the reduce half
  uint64_t seed;             // keys random bits
  uint32_t step;             // of the call, keys random bits
  uint32_t packet_elements;  // of a full packet
  uint32_t chunk_packets;    // of a full chunk
  uint32_t block_count;      // blocks, one for each owner; 0: the call has no such half
  size_t header_bytes;       // of a packet
  size_t block_elements;     // of the codec's blocks
  size_t block_bytes;        // of such a block, encoded
} leeway_payload_half_info;
// For leeway_payload_half_get().
#define LEEWAY_PAYLOAD_HALF_INFO_INIT \
  { sizeof(leeway_payload_half_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// The block of one owner.
typedef struct leeway_payload_block {
  size_t size;           // of this struct
  size_t offset;         // of the first element in the call's tensor
  size_t elements;       // 0: nothing of it passes through this rank
  uint64_t position;     // of the first element, as keyed random bits count
  uint32_t first_chunk;  // where contributions begin to leave
  uint32_t chunks;       // how many
} leeway_payload_block;
// For leeway_payload_block_at().
#define LEEWAY_PAYLOAD_BLOCK_INIT \
  { sizeof(leeway_payload_block), 0, 0, 0, 0, 0 }

// Keeps a layout beyond the callback that it was given to.
LEEWAY_C_EXPORT leeway_status leeway_payload_layout_copy(const leeway_payload_layout* layout,
                                                         leeway_payload_layout** copy);
// Ends a copy.
LEEWAY_C_EXPORT void leeway_payload_layout_free(leeway_payload_layout* copy);
// Numbers of a half, and its codec, in which nothing is automatic; `codec` may be NULL.
LEEWAY_C_EXPORT leeway_status leeway_payload_half_get(const leeway_payload_layout* layout,
                                                      leeway_payload_half half,
                                                      leeway_payload_half_info* info,
                                                      leeway_codec_options* codec);
// The block of `owner`.
LEEWAY_C_EXPORT leeway_status leeway_payload_block_at(const leeway_payload_layout* layout,
                                                      leeway_payload_half half, leeway_rank owner,
                                                      leeway_payload_block* block);
// Chunk `index` of a block, 0 .. chunks - 1.
LEEWAY_C_EXPORT leeway_status leeway_payload_chunk_at(const leeway_payload_layout* layout,
                                                      leeway_payload_half half, leeway_rank owner,
                                                      uint32_t index, leeway_payload_chunk* chunk);
// Bytes of landing memory; 0 for NULL.
LEEWAY_C_EXPORT size_t leeway_payload_landing_bytes(const leeway_payload_layout* layout);
// Contribution `index`, 0 .. count - 1.
LEEWAY_C_EXPORT leeway_status
leeway_payload_contribution_at(const leeway_payload_contributions* contributions, size_t index,
                               leeway_payload_contribution* contribution);

#ifdef __cplusplus
}
#endif

#endif
