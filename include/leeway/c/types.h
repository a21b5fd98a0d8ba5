// C: ranks, element types and views of tensors.
#ifndef LEEWAY_C_TYPES_H
#define LEEWAY_C_TYPES_H

#include "leeway/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Index of a process in a communicator, 0 .. size-1, or one of the numbers below.
typedef uint16_t leeway_rank;
// Values of leeway_rank that are no rank.
enum {
  LEEWAY_NO_RANK = 0xFFFF,  // no rank at all
  LEEWAY_ANY_RANK = 0xFFFD  // as the peer of a receive: the rank that sends next
};

// The type of a tensor's elements.
typedef int32_t leeway_data_type;
// Values of leeway_data_type.
enum {
  LEEWAY_F32 = 0,      // float
  LEEWAY_F64 = 1,      // double
  LEEWAY_F16 = 2,      // IEEE binary16
  LEEWAY_BF16 = 3,     // the upper half of a float
  LEEWAY_I8 = 4,       // int8_t
  LEEWAY_I32 = 5,      // int32_t
  LEEWAY_I64 = 6,      // int64_t
  LEEWAY_U8 = 7,       // uint8_t
  LEEWAY_U32 = 8,      // uint32_t
  LEEWAY_U64 = 9,      // uint64_t
  LEEWAY_F8E4M3 = 10,  // FP8 of OCP, largest 448
  LEEWAY_F8E5M2 = 11,  // FP8 of OCP, largest 57344
  LEEWAY_BOOL = 12     // a byte; any but 0 is true
};

// Bytes of one element; 0 for a number that is no type.
LEEWAY_C_EXPORT size_t leeway_data_type_bytes(leeway_data_type type);
// Returns the name as nccl-tests spells it, such as "float", or "unknown" for any other number.
// Never NULL, valid for ever.
LEEWAY_C_EXPORT const char* leeway_data_type_name(leeway_data_type type);

// Contiguous elements to read, never owned.
typedef struct leeway_const_tensor {
  const void* data;        // the first element, aligned for its type; may be NULL if count is 0
  size_t count;            // elements, not bytes
  leeway_data_type dtype;  // type of each element
} leeway_const_tensor;

// Contiguous elements to read and write, never owned.
typedef struct leeway_tensor {
  void* data;              // the first element, aligned for its type; may be NULL if count is 0
  size_t count;            // elements, not bytes
  leeway_data_type dtype;  // type of each element
} leeway_tensor;

// Blocks of different lengths in one buffer, one for each rank in rank order. The values are copied
// at the call.
typedef struct leeway_blocks {
  const size_t* counts;         // elements of each block; one entry for each rank
  const size_t* displacements;  // offsets in elements; NULL if blocks are adjacent
} leeway_blocks;

// A deadline that never comes. The call ends when it is done or when a peer is dead.
#define LEEWAY_NO_DEADLINE INT64_MAX

#ifdef __cplusplus
}
#endif

#endif
