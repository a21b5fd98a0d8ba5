// C: limits how long a rank computes before it joins the reduction. leeway/compute_budget.h shows a
// training step and has the rules.
#ifndef LEEWAY_C_COMPUTE_BUDGET_H
#define LEEWAY_C_COMPUTE_BUDGET_H

#include "leeway/c/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

// A budget. For one thread at a time. The communicator must outlive it.
typedef struct leeway_compute_budget leeway_compute_budget;

// Kinds of threshold, the compute time after which a step is stopped.
typedef int32_t leeway_threshold;
// Values of leeway_threshold.
enum {
  LEEWAY_THRESHOLD_NONE = 0,       // never
  LEEWAY_THRESHOLD_AUTOMATIC = 1,  // derived from measured steps
  LEEWAY_THRESHOLD_FIXED = 2       // after threshold_ns
};

// The divisor of an average of gradients.
typedef int32_t leeway_normalisation;
// Values of leeway_normalisation.
enum {
  LEEWAY_REALISED_WEIGHT = 0,  // completed micro-batches; unbiased
  LEEWAY_FIXED_MAXIMUM = 1     // planned micro-batches
};

// How a job makes up for dropped micro-batches.
typedef int32_t leeway_compensation;
// Values of leeway_compensation.
enum {
  LEEWAY_COMPENSATION_NONE = 0,         // no compensation
  LEEWAY_COMPENSATION_EXTRA_STEPS = 1,  // more steps with new data
  LEEWAY_COMPENSATION_REQUEUE = 2       // unused data come first in the next step
};

// How much a rank plans to compute in a step, and when it stops, as leeway::ComputeBudgetOptions.
typedef struct leeway_compute_budget_options {
  size_t size;  // bytes of this struct
  // Micro-batches planned for a step of this rank, 1 .. 4096; must be given.
  uint32_t micro_batches;
  leeway_threshold threshold;  // when a step is stopped
  int64_t threshold_ns;        // with LEEWAY_THRESHOLD_FIXED: above 0
  uint64_t warm_up_steps;      // first steps, in which nothing is stopped or measured
  // Micro-batches of a step that are completed even if its time is over.
  uint32_t micro_batches_min;
  leeway_normalisation normalisation;  // the divisor of an average
  leeway_compensation compensation;    // for dropped micro-batches
  uint32_t window_steps;               // steps between two exchanges, 6 .. 256; 0 = none
  uint64_t reestimate_steps;           // steps after which an estimate is replaced; 0 = never
  // The estimated threshold is replaced if a micro-batch's mean latency has changed by more than
  // this fraction since the estimate was made; 0 = never.
  double drift_tolerance;
  int64_t exchange_deadline_ns;          // deadline of each exchange
  int64_t (*clock_ns)(void* user);       // monotonic time, any origin; NULL = the system's
  double (*device_seconds)(void* user);  // seconds of the last completed micro-batch; may be NULL
  void* user;                            // argument of both callbacks
} leeway_compute_budget_options;
// The defaults; micro_batches must be set.
#define LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT                                                        \
  {                                                                                               \
    sizeof(leeway_compute_budget_options), 0, LEEWAY_THRESHOLD_AUTOMATIC, 0, 6, 1,                \
        LEEWAY_REALISED_WEIGHT, LEEWAY_COMPENSATION_NONE, 44, 1000, 0.1, 30000000000, NULL, NULL, \
        NULL                                                                                      \
  }

// Counts of ended steps, as leeway::ComputeCounts.
typedef struct leeway_compute_counts {
  size_t size;                // bytes of this struct
  uint64_t steps;             // steps that ended
  uint64_t steps_stopped;     // steps that ended before their last micro-batch
  uint64_t planned;           // micro-batches planned
  uint64_t completed;         // micro-batches completed
  uint64_t dropped;           // micro-batches planned and not completed
  uint64_t aborted;           // those of `dropped` that were begun and given up
  uint64_t clock_clamps;      // readings of a clock that jumped
  uint64_t latency_clamps;    // device times that are NaN, negative or above an hour
  uint64_t threshold_clamps;  // steps stopped by a threshold below any micro-batch
} leeway_compute_counts;
// A struct of zeros, for the counts of leeway_compute_budget_statistics().
#define LEEWAY_COMPUTE_COUNTS_INIT \
  { sizeof(leeway_compute_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Counts of exchanges, and the last estimate put in force, as leeway::ComputeStatistics.
typedef struct leeway_compute_statistics {
  size_t size;                   // bytes of this struct
  uint64_t exchanges;            // exchanges between all ranks that were begun
  uint64_t exchange_waits;       // steps that waited for an exchange
  uint64_t exchange_failures;    // failed exchanges; the threshold stays as it was
  uint64_t estimates;            // estimates put in force
  uint64_t drifts;               // estimates put in force because latencies had changed
  int64_t threshold_ns;          // the estimate's threshold; 0 without an estimate, as all below
  double drop_rate;              // fraction of the micro-batches that are not completed
  double time_cut;               // fraction of a step's time that is saved
  double effective_speedup;      // relative gain in micro-batches per time
  double predicted_threshold_s;  // threshold by the normal model
  double predicted_drop_rate;    // drop_rate by the normal model
  double predicted_effective_speedup;  // effective_speedup by the normal model
  double micro_batch_mean_s;           // mean latency
  double micro_batch_deviation_s;      // standard deviation of the latency
  double overhead_s;                   // time of a step beyond the slowest rank's compute time
} leeway_compute_statistics;
// A struct of zeros, for leeway_compute_budget_statistics().
#define LEEWAY_COMPUTE_STATISTICS_INIT                                                           \
  {                                                                                              \
    sizeof(leeway_compute_statistics), 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, \
        0.0                                                                                      \
  }

// Makes a budget. All ranks must call it, and each waits for all others. Returns LEEWAY_MISMATCH if
// options differ between ranks.
LEEWAY_C_EXPORT leeway_status leeway_compute_budget_create(
    leeway_communicator* communicator, const leeway_compute_budget_options* options,
    leeway_compute_budget** budget);
// Frees the budget; waits for an exchange in flight.
LEEWAY_C_EXPORT void leeway_compute_budget_free(leeway_compute_budget* budget);
// Returns 1 if the rank must run another micro-batch; 0 if the step is over or `budget` is NULL.
LEEWAY_C_EXPORT int32_t leeway_compute_budget_next_micro_batch(leeway_compute_budget* budget);
// Call it between forward and backward. Returns 1 if the step is over and the current micro-batch
// does not count, or if `budget` is NULL; else 0.
LEEWAY_C_EXPORT int32_t leeway_compute_budget_should_stop(leeway_compute_budget* budget);
// Returns leeway_collective_options.weight for the step's gradient. Returns 0 for NULL, as the
// getters below do.
LEEWAY_C_EXPORT double leeway_compute_budget_weight(const leeway_compute_budget* budget);
// Micro-batches completed in the step.
LEEWAY_C_EXPORT uint32_t leeway_compute_budget_completed(const leeway_compute_budget* budget);
// Number, in this rank's order of data, of the micro-batch that next_micro_batch() asked for last.
LEEWAY_C_EXPORT uint64_t leeway_compute_budget_micro_batch(const leeway_compute_budget* budget);
// Gives the micro-batches planned for the step and not completed, as the number of the first and
// their count. Both pointers may be NULL.
LEEWAY_C_EXPORT leeway_status leeway_compute_budget_dropped(const leeway_compute_budget* budget,
                                                            uint64_t* first, uint64_t* count);
// Returns how many steps are still to run: `steps_planned` less the steps that ended, plus the
// steps that make up for drops.
LEEWAY_C_EXPORT uint64_t leeway_compute_budget_steps_due(const leeway_compute_budget* budget,
                                                         uint64_t steps_planned);
// The threshold in force; LEEWAY_NO_DEADLINE if none.
LEEWAY_C_EXPORT int64_t leeway_compute_budget_threshold_ns(const leeway_compute_budget* budget);
// Gives counts of what was computed and exchanged so far. `local` is for this rank, `global` the
// sum over ranks as of the last exchange. Each of the three pointers may be NULL.
LEEWAY_C_EXPORT leeway_status leeway_compute_budget_statistics(const leeway_compute_budget* budget,
                                                               leeway_compute_counts* local,
                                                               leeway_compute_counts* global,
                                                               leeway_compute_statistics* all);
// Returns the error of the last exchange that failed, or an error if the threshold is shorter than
// every micro-batch; otherwise LEEWAY_OK.
LEEWAY_C_EXPORT leeway_status leeway_compute_budget_explain(const leeway_compute_budget* budget);
// Brings the global counts up to date. All ranks must call it, between steps.
LEEWAY_C_EXPORT leeway_status leeway_compute_budget_synchronize(leeway_compute_budget* budget);

#ifdef __cplusplus
}
#endif

#endif
