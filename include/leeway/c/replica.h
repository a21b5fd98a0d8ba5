// C: replicas of parameters that drift within bounds. leeway/replica.h says how they work.
#ifndef LEEWAY_C_REPLICA_H
#define LEEWAY_C_REPLICA_H

#include "leeway/c/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

// A full copy of the parameters; this rank owns one shard of them. For one thread at a time. All
// ranks must make the same calls in the same order. The communicator must outlive the replica.
typedef struct leeway_replica leeway_replica;

// How far replicas may fall behind, and how parameters travel.
typedef struct leeway_replica_options {
  size_t size;                        // bytes of this struct
  uint32_t age_max;                   // versions that a block may be behind, 1 .. 255; 0 = no cap
  leeway_delivery delivery;           // delivery class of broadcasts
  int64_t deadline_ns;                // deadline of a broadcast
  const leeway_codec_options* codec;  // format of parameters; NULL = native
  uint32_t drift_every;               // broadcasts between two measurements; 0 = never
  uint32_t drift_samples;             // values of each shard that are compared
} leeway_replica_options;
// The defaults.
#define LEEWAY_REPLICA_OPTIONS_INIT \
  { sizeof(leeway_replica_options), 8, LEEWAY_BEST_EFFORT, 5000000000, NULL, 16, 256 }

// Measured and predicted drift, as leeway::DriftReport. Mean squares are per element.
typedef struct leeway_drift_report {
  size_t size;                // bytes of this struct
  uint64_t measurements;      // exchanges that measured
  double pair_measured;       // between ranks that do not own the element
  double owner_measured;      // between the owner and another
  double pair_predicted;      // prediction of pair_measured
  double owner_predicted;     // prediction of owner_measured
  double pair_predicted_gap;  // prediction of pair_measured, from the measured gap
  double loss;                // fraction of the broadcasts' packets that was lost
  double step_variance;       // variance of one optimizer step
  double step_mean_square;    // squared mean step
  double gap_mean_square;     // mean square of the gap, given that one of the two ranks received
  double age_mean;            // mean age over blocks and broadcasts
  uint64_t blocks_refreshed;  // blocks that were requested because of age_max
  uint32_t age_max_seen;      // in versions
  uint32_t age_bins;          // bins that leeway_replica_ages() has
} leeway_drift_report;
// An empty report, for leeway_replica_drift().
#define LEEWAY_DRIFT_REPORT_INIT \
  { sizeof(leeway_drift_report), 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0 }

// Makes a replica of `parameters`, which must stay valid. If their values are not equal on all
// ranks, call leeway_replica_synchronize() first.
LEEWAY_C_EXPORT leeway_status leeway_replica_create(leeway_communicator* communicator,
                                                    float* parameters, size_t count,
                                                    const leeway_replica_options* options,
                                                    leeway_replica** replica);
// Frees the handle.
LEEWAY_C_EXPORT void leeway_replica_free(leeway_replica* replica);
// Gives the part of the parameters that this rank owns: offset of its first element, its length,
// and the values for the optimizer to update, valid for the life of the handle.
LEEWAY_C_EXPORT leeway_status leeway_replica_owned(leeway_replica* replica, size_t* offset,
                                                   size_t* count, float** values);
// Reduces `gradient`, which has as many elements as the parameters. On return the part of
// `gradient` that this rank owns holds the reduction.
LEEWAY_C_EXPORT leeway_status
leeway_replica_reduce_gradients(leeway_replica* replica, float* gradient, size_t count,
                                const leeway_collective_options* options, leeway_report* report);
// Sends the owned shard and receives the others' shards.
LEEWAY_C_EXPORT leeway_status leeway_replica_broadcast_parameters(leeway_replica* replica,
                                                                  leeway_report* report);
// Makes all replicas equal to the owners' values, with exact delivery.
LEEWAY_C_EXPORT leeway_status leeway_replica_synchronize(leeway_replica* replica,
                                                         leeway_report* report);
// Gives the distance of the replicas, measured and predicted.
LEEWAY_C_EXPORT leeway_status leeway_replica_drift(const leeway_replica* replica,
                                                   leeway_drift_report* drift);
// Gives a histogram of ages: bins[a] is the number of steps that blocks spent at age a, summed over
// blocks. The last bin includes all higher ages. Copies `capacity` bins at most; `count` is the
// number of bins that there are.
LEEWAY_C_EXPORT leeway_status leeway_replica_ages(const leeway_replica* replica, uint64_t* bins,
                                                  size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
