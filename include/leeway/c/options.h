// C: the caller's choices, for a communicator and for each call. Each member has the meaning and
// the range of its namesake in leeway::Options or leeway::CollectiveOptions (leeway/options.h).
#ifndef LEEWAY_C_OPTIONS_H
#define LEEWAY_C_OPTIONS_H

#include "leeway/c/codec.h"
#include "leeway/c/payload.h"
#include "leeway/c/rendezvous.h"
#include "leeway/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Transports that carry datagrams between ranks.
typedef int32_t leeway_transport;
// Values of leeway_transport.
enum {
  LEEWAY_TRANSPORT_AUTOMATIC = 0,  // verbs if all ranks can, else mixed; never ucx
  LEEWAY_TRANSPORT_UDP = 1,        // UDP datagrams
  LEEWAY_TRANSPORT_VERBS = 2,      // InfiniBand and RoCE
  LEEWAY_TRANSPORT_UCX = 3,        // reliable: nothing is lost; not with a secret
  LEEWAY_TRANSPORT_INPROC = 4,     // threads of one process
  LEEWAY_TRANSPORT_CUSTOM = 5,     // a C++ program's own; reported, but cannot be chosen
  LEEWAY_TRANSPORT_SHM = 6,        // memory of one host
  LEEWAY_TRANSPORT_MIXED = 7       // memory to ranks of the same host, udp to others
};

// Returns the name, such as "udp", or "unknown" for any other number. Never NULL, valid for ever.
LEEWAY_C_EXPORT const char* leeway_transport_name(leeway_transport transport);

// Congestion control: how the datagrams that a process sends are paced.
typedef int32_t leeway_congestion_control;
// Values of leeway_congestion_control.
enum {
  LEEWAY_CONGESTION_NONE = 0,       // limited by credit and sockets only
  LEEWAY_CONGESTION_FIXED = 1,      // at rate_bits_per_second
  LEEWAY_CONGESTION_SCAVENGER = 2,  // only what other traffic leaves
  LEEWAY_CONGESTION_WAN = 3,        // for lossy links that others use
  LEEWAY_CONGESTION_AUTOMATIC = 4,  // wan if a rank is far or has a public address, else none
  LEEWAY_CONGESTION_FABRIC = 5      // short queues, for a network of one's own; experimental
};

// Returns the name, such as "wan", or "unknown" for any other number. Never NULL, valid for ever.
LEEWAY_C_EXPORT const char* leeway_congestion_control_name(leeway_congestion_control control);

// Options of one communicator. Strings are copied at the call; NULL means the empty string.
typedef struct leeway_options {
  size_t size;                 // bytes of this struct
  int32_t rank;                // this process's rank; -1 (and world_size -1) for a group of one
  int32_t world_size;          // number of ranks in the group
  const char* rendezvous;      // "host:port" of rank 0's TCP listener
  leeway_transport transport;  // equal on all ranks
  int32_t multicast;           // flag: send data for all ranks (the spread half) once
  // Local address for data; if empty, the address that routes to rank 0.
  const char* bind_address;
  int64_t join_timeout_ns;  // most time that ranks wait for each other
  // time of silence after which a peer counts as dead, 100 ms or more; LEEWAY_NO_DEADLINE = never
  int64_t peer_timeout_ns;
  size_t datagram_bytes;       // largest UDP payload; 0 = from the path
  size_t socket_buffer_bytes;  // for each direction; 0 = 8 MiB, or as much as the kernel allows
  size_t window_bytes;         // most data in flight to one peer; 0 = the default
  uint64_t seed;               // all ranks use rank 0's value
  const char* faults;          // injected faults: "loss=0.1,seed=3", as LEEWAY_FAULT; or empty
  const char* log_level;       // trace debug info warn error off; empty means warn
  // name of the group; groups of different names may meet at the same place; empty means "world"
  const char* communicator_name;
  leeway_rendezvous* store;  // where ranks meet instead of rank 0's listener; may be NULL
  uint64_t restart_count;    // number of this start of the job, part of every key; 0 suffices
  leeway_congestion_control congestion;  // the same in the whole process
  uint64_t rate_bits_per_second;         // with LEEWAY_CONGESTION_FIXED, to all peers together
  // file made by `leeway keygen`; if empty, only private addresses are allowed
  const char* secret_file;
  int32_t insecure;  // flag: public addresses without a secret, for laboratories
  uint16_t port;     // UDP port; 0 = the system chooses
  // "host:port" at which Prometheus and `leeway top` find metrics; empty for no metrics
  const char* metrics;
  const char* trace;            // file for a qlog of every datagram; empty for no trace
  const char* tls_ca;           // PEM files, instead of a secret file or in addition to it
  const char* tls_certificate;  // certificate of this process; names urn:leeway:JOB
  const char* tls_key;          // only its owner may be able to read it
  const char* site;             // name of this rank's site, or "host"; empty for no sites
  int32_t lanes;                // sockets with a thread each, over UDP; equal on all ranks
} leeway_options;
// The defaults: a group of one, join_timeout 60 s, peer_timeout 3 s.
#define LEEWAY_OPTIONS_INIT                                                                      \
  {                                                                                              \
    sizeof(leeway_options), -1, -1, NULL, LEEWAY_TRANSPORT_AUTOMATIC, 0, NULL, 60000000000,      \
        3000000000, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, LEEWAY_CONGESTION_AUTOMATIC, 0, NULL, \
        0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1                                              \
  }

// The source of this process's rank and of the number of ranks.
typedef int32_t leeway_membership;
// Values of leeway_membership.
enum {
  LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT = 0,  // LEEWAY_RANK, LEEWAY_WORLD_SIZE, or the launcher
  LEEWAY_MEMBERSHIP_FROM_CALLER = 1        // rank and world_size stay -1
};

// Fills `options`, whose member `size` must be set, from LEEWAY_* and launchers' environment
// variables. The strings are valid until this thread calls this function again. If a variable does
// not parse, returns LEEWAY_INVALID_ARGUMENT and quotes it.
LEEWAY_C_EXPORT leeway_status leeway_options_from_environment(leeway_options* options,
                                                              leeway_membership membership);

// How contributions become one value.
typedef int32_t leeway_op;
// Values of leeway_op.
enum {
  LEEWAY_SUM = 0,         // sum over all ranks; integers wrap
  LEEWAY_AVG = 1,         // the mean per unit of work
  LEEWAY_PROD = 2,        // product; integers wrap
  LEEWAY_MIN = 3,         // minimum
  LEEWAY_MAX = 4,         // maximum
  LEEWAY_PREMUL_SUM = 5,  // sum of contributions times their factors
  LEEWAY_BAND = 6,        // bitwise and
  LEEWAY_BOR = 7,         // bitwise or
  LEEWAY_BXOR = 8         // bitwise exclusive or
};

// The delivery class of a call: its promise about completeness.
typedef int32_t leeway_delivery;
// Values of leeway_delivery.
enum {
  LEEWAY_EXACT = 0,       // every element, or an error
  LEEWAY_BOUNDED = 1,     // repairs until at most loss_max is missing, or until the deadline
  LEEWAY_BEST_EFFORT = 2  // one pass, no repair
};

// How a lossy sum or average is formed from what arrived (src/math/estimate/README.md).
typedef int32_t leeway_estimator;
// Values of leeway_estimator.
enum {
  LEEWAY_ZERO_FILL = 0,         // lost contributions count as zero; biased
  LEEWAY_RATIO = 1,             // divides by the weight that arrived
  LEEWAY_SYMMETRIC_RATIO = 2,   // unbiased on equal links
  LEEWAY_STRATIFIED = 3,        // the owner's contribution with its exact share
  LEEWAY_HORVITZ_THOMPSON = 4,  // unbiased on unequal and bursty links
  LEEWAY_AUGMENTED = 5          // Horvitz-Thompson around a control variate
};

// A double or a 64-bit integer that is kept exactly.
typedef struct leeway_scalar {
  leeway_data_type type;  // member of the union: LEEWAY_F64, LEEWAY_I64 or LEEWAY_U64
  int32_t reserved;       // 0
  // The number.
  union {
    double f64;    // for LEEWAY_F64
    int64_t i64;   // for LEEWAY_I64
    uint64_t u64;  // for LEEWAY_U64
  } value;         // the member that `type` names
} leeway_scalar;

// Options of one call. Arrays are read, and `residual` is written, until the call is done; codecs
// and the factor are copied.
typedef struct leeway_collective_options {
  size_t size;                 // bytes of this struct
  leeway_op op;                // reductions only
  leeway_delivery delivery;    // class of the reduce half, or of the only half
  int64_t deadline_ns;         // counts from submission; or LEEWAY_NO_DEADLINE
  double loss_max;             // bounded: fraction that may stay missing, 0 .. 1
  leeway_delivery spread;      // class of the spread half of an all_reduce
  leeway_estimator estimator;  // how lossy sums and averages are formed
  // Codec of the reduce half, or of the only half; NULL = native.
  const leeway_codec_options* codec;
  const leeway_codec_options* spread_codec;  // codec of the spread half; NULL = the same as `codec`
  const leeway_scalar* factor;               // this rank's factor for LEEWAY_PREMUL_SUM; NULL = 1
  double weight;                             // units of work behind this rank's contribution
  const double* owner_weights;               // one for each rank, replaces weight; may be NULL
  size_t owner_weight_count;                 // length of owner_weights
  uint32_t tag;                              // messages only
  // Flag: wait until every owner has said whether it used this contribution.
  int32_t confirm_use;
  // For the estimator augmented: a guess of the result; may be NULL.
  const float* control_variate;
  size_t control_variate_count;         // length of control_variate
  float* residual;                      // error feedback; NULL for none
  size_t residual_count;                // length of residual
  const leeway_payload_source* source;  // encodes instead of the library; may be NULL
  // Decodes instead of the library; give both source and sink, or neither. The structs are copied,
  // but not what their `user` points to.
  const leeway_payload_sink* sink;
  int32_t keep_non_finite;  // flag: lossy sums take contributions with infinities and NaNs
  int32_t reserved;         // 0
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
