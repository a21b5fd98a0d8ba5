// C: parameters that drift within bounds. The twin of leeway/replica.h, which says how it works.
#ifndef LEEWAY_C_REPLICA_H
#define LEEWAY_C_REPLICA_H

#include "leeway/c/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

// A full copy of the parameters, of which this rank owns one shard. For one thread at a time. All
// ranks make the same calls in the same order. The communicator must outlive it.
typedef struct leeway_replica leeway_replica;

// How old replicas may become, and how parameters travel.
typedef struct leeway_replica_options {
  size_t size;                        // of this struct
  uint32_t age_max;                   // versions that a block may be behind, 1 .. 255; 0: no cap
  leeway_delivery delivery;           // of broadcasts
  int64_t deadline_ns;                // of a broadcast
  const leeway_codec_options* codec;  // NULL: native
  uint32_t drift_every;               // broadcasts between two measurements; 0: never
  uint32_t drift_samples;             // values of a shard that are compared
} leeway_replica_options;
// The defaults.
#define LEEWAY_REPLICA_OPTIONS_INIT \
  { sizeof(leeway_replica_options), 8, LEEWAY_BEST_EFFORT, 5000000000, NULL, 16, 256 }

// Measured beside predicted, as leeway::DriftReport; mean squares per element.
typedef struct leeway_drift_report {
  size_t size;                // of this struct
  uint64_t measurements;      // exchanges that measured
  double pair_measured;       // between ranks that do not own the element
  double owner_measured;      // between the owner and another
  double pair_predicted;      // of pair_measured
  double owner_predicted;     // of owner_measured
  double pair_predicted_gap;  // of pair_measured, from the measured gap
  double loss;                // of the broadcasts
  double step_variance;       // of one optimizer step
  double step_mean_square;    // squared mean step
  double gap_mean_square;     // where one of two received
  double age_mean;            // over blocks and broadcasts
  uint64_t blocks_refreshed;  // that had to arrive because of age_max
  uint32_t age_max_seen;      // in versions
  uint32_t age_bins;          // for leeway_replica_ages()
} leeway_drift_report;
// For leeway_replica_drift().
#define LEEWAY_DRIFT_REPORT_INIT \
  { sizeof(leeway_drift_report), 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0 }

// `parameters` must stay, and hold the same values on all ranks, or call
// leeway_replica_synchronize() first.
LEEWAY_C_EXPORT leeway_status leeway_replica_create(leeway_communicator* communicator,
                                                    float* parameters, size_t count,
                                                    const leeway_replica_options* options,
                                                    leeway_replica** replica);
// Ends the handle.
LEEWAY_C_EXPORT void leeway_replica_free(leeway_replica* replica);
// The part of the parameters that this rank owns: its first element, its length, and the values for
// the optimizer to update, valid for the life of the handle.
LEEWAY_C_EXPORT leeway_status leeway_replica_owned(leeway_replica* replica, size_t* offset,
                                                   size_t* count, float** values);
// `count` is that of the parameters. On return gradient[owned range] holds the reduction.
LEEWAY_C_EXPORT leeway_status
leeway_replica_reduce_gradients(leeway_replica* replica, float* gradient, size_t count,
                                const leeway_collective_options* options, leeway_report* report);
// Sends the owned shard, receives the others'.
LEEWAY_C_EXPORT leeway_status leeway_replica_broadcast_parameters(leeway_replica* replica,
                                                                  leeway_report* report);
// Exact: all replicas become equal to the owners' values.
LEEWAY_C_EXPORT leeway_status leeway_replica_synchronize(leeway_replica* replica,
                                                         leeway_report* report);
// How far replicas are apart.
LEEWAY_C_EXPORT leeway_status leeway_replica_drift(const leeway_replica* replica,
                                                   leeway_drift_report* drift);
// bins[a]: block-steps spent at age a, the last one that and above. Copies `capacity` of them at
// most; `count` says how many there are.
LEEWAY_C_EXPORT leeway_status leeway_replica_ages(const leeway_replica* replica, uint64_t* bins,
                                                  size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
