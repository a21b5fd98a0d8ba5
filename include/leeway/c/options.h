// C: what a caller may choose, for a communicator and for each call. The members have the meaning
// and the range of those of leeway::Options and leeway::CollectiveOptions (leeway/options.h).
#ifndef LEEWAY_C_OPTIONS_H
#define LEEWAY_C_OPTIONS_H

#include "leeway/c/codec.h"
#include "leeway/c/payload.h"
#include "leeway/c/rendezvous.h"
#include "leeway/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// What carries the datagrams between ranks.
typedef int32_t leeway_transport;
// Values of leeway_transport.
enum {
  LEEWAY_TRANSPORT_AUTOMATIC = 0,  // verbs where all ranks can, else mixed; exact calls over ucx
  LEEWAY_TRANSPORT_UDP = 1,        // datagrams of the system
  LEEWAY_TRANSPORT_VERBS = 2,      // InfiniBand and RoCE
  LEEWAY_TRANSPORT_UCX = 3,        // reliable
  LEEWAY_TRANSPORT_INPROC = 4,     // threads of one process
  LEEWAY_TRANSPORT_CUSTOM = 5,     // of a C++ program; only said, never asked for
  LEEWAY_TRANSPORT_SHM = 6,        // memory of one host
  LEEWAY_TRANSPORT_MIXED = 7       // memory to ranks of the same host, udp to others
};

// The name: "udp"; "unknown" for another number. Never NULL, valid for ever.
LEEWAY_C_EXPORT const char* leeway_transport_name(leeway_transport transport);

// What paces all that a process sends.
typedef int32_t leeway_congestion_control;
// Values of leeway_congestion_control.
enum {
  LEEWAY_CONGESTION_NONE = 0,       // as fast as credit and sockets allow
  LEEWAY_CONGESTION_FIXED = 1,      // at rate_bits_per_second
  LEEWAY_CONGESTION_SCAVENGER = 2,  // only what other traffic leaves
  LEEWAY_CONGESTION_WAN = 3,        // lossy lines that others use
  LEEWAY_CONGESTION_AUTOMATIC = 4,  // wan where a rank is far or has a public address, else none
  LEEWAY_CONGESTION_FABRIC = 5      // a network of one's own with short round trips; experimental
};

// The name: "wan"; "unknown" for another number. Never NULL, valid for ever.
LEEWAY_C_EXPORT const char* leeway_congestion_control_name(leeway_congestion_control control);

// One value per communicator. Strings are copied at the call; NULL is the empty one.
typedef struct leeway_options {
  size_t size;                 // of this struct
  int32_t rank;                // of this process; -1 with world_size -1: alone
  int32_t world_size;          // ranks of the group
  const char* rendezvous;      // "host:port" of rank 0's TCP listener
  leeway_transport transport;  // equal on all ranks
  int32_t multicast;           // flag: what goes to all ranks alike is sent once
  const char* bind_address;    // local address for data; empty: the route to rank 0
  int64_t join_timeout_ns;     // how long ranks wait for each other
  int64_t peer_timeout_ns;  // silent for so long: dead; 100 ms or more, LEEWAY_NO_DEADLINE: never
  size_t datagram_bytes;    // largest UDP payload; 0: from the path
  size_t socket_buffer_bytes;     // per direction; 0: 8 MiB, or what the kernel allows
  size_t window_bytes;            // data in flight to one peer; 0: its receive buffer
  uint64_t seed;                  // rank 0's value is used by all
  const char* faults;             // to inject: "loss=0.1,seed=3", as LEEWAY_FAULT; empty: none
  const char* log_level;          // trace debug info warn error off; empty: warn
  const char* communicator_name;  // groups of different names meet at the same place; empty: world
  leeway_rendezvous* store;       // where ranks meet in place of rank 0's listener; may be NULL
  uint64_t restart_count;         // of the caller, part of every key; 0 suffices
  leeway_congestion_control congestion;  // of the whole process
  uint64_t rate_bits_per_second;         // LEEWAY_CONGESTION_FIXED: all peers together
  const char* secret_file;  // of `leeway keygen`; empty: none, and private addresses only
  int32_t insecure;         // flag: public addresses without a secret, for laboratories
  uint16_t port;            // UDP port; 0: the system chooses
  const char* metrics;      // "host:port" that answers Prometheus and `leeway top`; empty: nowhere
  const char* trace;        // file for a qlog of every datagram; empty: none
  const char* tls_ca;       // PEM files, in place of a secret file or besides it
  const char* tls_certificate;  // of this process; names urn:leeway:JOB
  const char* tls_key;          // readable by its owner alone
  const char* site;             // name of this rank's site, or "host"; empty: none
  int32_t lanes;                // sockets with a thread each, over UDP; equal on all ranks
} leeway_options;
// The defaults: alone, join_timeout 60 s, peer_timeout 3 s.
#define LEEWAY_OPTIONS_INIT                                                                      \
  {                                                                                              \
    sizeof(leeway_options), -1, -1, NULL, LEEWAY_TRANSPORT_AUTOMATIC, 0, NULL, 60000000000,      \
        3000000000, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, LEEWAY_CONGESTION_AUTOMATIC, 0, NULL, \
        0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1                                              \
  }

// Who knows this process's rank and the number of ranks.
typedef int32_t leeway_membership;
// Values of leeway_membership.
enum {
  LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT = 0,  // LEEWAY_RANK, LEEWAY_WORLD_SIZE, or the launcher
  LEEWAY_MEMBERSHIP_FROM_CALLER = 1        // rank and world_size stay -1
};

// Fills `options`, whose size must be set, from the variables of launchers and LEEWAY_*. Its
// strings are valid until this thread calls this function again. LEEWAY_INVALID_ARGUMENT quotes a
// variable that does not parse.
LEEWAY_C_EXPORT leeway_status leeway_options_from_environment(leeway_options* options,
                                                              leeway_membership membership);

// How contributions become one value.
typedef int32_t leeway_op;
// Values of leeway_op.
enum {
  LEEWAY_SUM = 0,         // of all ranks; integers wrap
  LEEWAY_AVG = 1,         // the sum over the units of work
  LEEWAY_PROD = 2,        // product; integers wrap
  LEEWAY_MIN = 3,         // least
  LEEWAY_MAX = 4,         // greatest
  LEEWAY_PREMUL_SUM = 5,  // sum of contributions times their factors
  LEEWAY_BAND = 6,        // bitwise and
  LEEWAY_BOR = 7,         // bitwise or
  LEEWAY_BXOR = 8         // bitwise exclusive or
};

// The promise of a call about completeness.
typedef int32_t leeway_delivery;
// Values of leeway_delivery.
enum {
  LEEWAY_EXACT = 0,       // every element, or an error
  LEEWAY_BOUNDED = 1,     // repairs until at most loss_max is missing, or the deadline
  LEEWAY_BEST_EFFORT = 2  // one pass, no repair
};

// How a lossy sum or average is formed from what arrived (src/estimate/README.md).
typedef int32_t leeway_estimator;
// Values of leeway_estimator.
enum {
  LEEWAY_ZERO_FILL = 0,         // lost contributions count as zero; biased
  LEEWAY_RATIO = 1,             // divides by the weight that arrived
  LEEWAY_SYMMETRIC_RATIO = 2,   // unbiased on equal links
  LEEWAY_STRATIFIED = 3,        // own contribution with its exact share
  LEEWAY_HORVITZ_THOMPSON = 4,  // unbiased on unequal and bursty links
  LEEWAY_AUGMENTED = 5          // the same around a control variate
};

// A number that is kept exactly.
typedef struct leeway_scalar {
  leeway_data_type type;  // which member of the union: LEEWAY_F64, LEEWAY_I64 or LEEWAY_U64
  int32_t reserved;       // 0
  // The number.
  union {
    double f64;    // of LEEWAY_F64
    int64_t i64;   // of LEEWAY_I64
    uint64_t u64;  // of LEEWAY_U64
  } value;         // as `type` says
} leeway_scalar;

// One value per call. Arrays are read, and `residual` is written, until the call is done; codecs
// and the factor are copied.
typedef struct leeway_collective_options {
  size_t size;                               // of this struct
  leeway_op op;                              // of reductions
  leeway_delivery delivery;                  // of the reduce half, or the only half
  int64_t deadline_ns;                       // from submission; or LEEWAY_NO_DEADLINE
  double loss_max;                           // bounded: what may be missing, 0 .. 1
  leeway_delivery spread;                    // class of the spread half of an all_reduce
  leeway_estimator estimator;                // lossy sums and averages
  const leeway_codec_options* codec;         // reduce half, or the only half; NULL: native
  const leeway_codec_options* spread_codec;  // spread half; NULL: as codec
  const leeway_scalar* factor;               // LEEWAY_PREMUL_SUM: this rank's; NULL: 1
  double weight;                             // units of work behind this rank's contribution
  const double* owner_weights;               // one for each rank, replaces weight; may be NULL
  size_t owner_weight_count;                 // of owner_weights
  uint32_t tag;                              // of messages
  int32_t confirm_use;                       // flag: wait for what owners used
  const float* control_variate;              // augmented: a guess of the result; may be NULL
  size_t control_variate_count;              // of control_variate
  float* residual;                           // error feedback; NULL: off
  size_t residual_count;                     // of residual
  const leeway_payload_source* source;       // who encodes in the library's place; NULL: nobody
  const leeway_payload_sink* sink;  // who decodes; both or neither. Copied, not their users
  int32_t keep_non_finite;          // flag: lossy sums take contributions with infinities and NaNs
  int32_t reserved;                 // 0
} leeway_collective_options;
// The defaults: an exact sum within 60 s.
#define LEEWAY_COLLECTIVE_OPTIONS_INIT                                                           \
  {                                                                                              \
    sizeof(leeway_collective_options), LEEWAY_SUM, LEEWAY_EXACT, 60000000000, 0.0, LEEWAY_EXACT, \
        LEEWAY_RATIO, NULL, NULL, NULL, 1.0, NULL, 0, 0, 0, NULL, 0, NULL, 0, NULL, NULL, 0, 0   \
  }

#ifdef __cplusplus
}
#endif

#endif
