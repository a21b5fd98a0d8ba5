// C: a contribution that missed its round is carried into the next one. The twin of
// leeway/late_work.h, which shows a training step.
#ifndef LEEWAY_C_LATE_WORK_H
#define LEEWAY_C_LATE_WORK_H

#include "leeway/c/options.h"
#include "leeway/c/report.h"

#ifdef __cplusplus
extern "C" {
#endif

// What was missed of one float tensor. For one thread at a time.
typedef struct leeway_late_work leeway_late_work;

// Since creation. A contribution to the shard of one owner counts as one.
typedef struct leeway_late_work_statistics {
  size_t size;                // of this struct
  uint64_t missed;            // contributions that their owner did not use
  uint64_t carried;           // of those, added to a later call
  uint64_t dropped;           // missed once more after being carried
  uint64_t elements_carried;  // elements of the carried ones
  double weight_carried;      // units, summed over owners
} leeway_late_work_statistics;
// For leeway_late_work_statistics_of().
#define LEEWAY_LATE_WORK_STATISTICS_INIT \
  { sizeof(leeway_late_work_statistics), 0, 0, 0, 0, 0.0 }

// For a tensor of `count` elements.
LEEWAY_C_EXPORT leeway_status leeway_late_work_create(size_t count, leeway_late_work** late);
// Ends the handle.
LEEWAY_C_EXPORT void leeway_late_work_free(leeway_late_work* late);
// Before each reduction, with its gradient and options: adds what was missed last time, and sets
// owner_weights, owner_weight_count and confirm_use in `options`. The weights are valid until the
// next call. LEEWAY_INVALID_ARGUMENT, and nothing is changed, for another size, another op, weights
// set by the caller, or options too short for these members.
LEEWAY_C_EXPORT leeway_status leeway_late_work_add_to(leeway_late_work* late, float* gradient,
                                                      size_t count,
                                                      leeway_collective_options* options);
// After a reduction that succeeded: what became of it.
LEEWAY_C_EXPORT leeway_status leeway_late_work_keep(leeway_late_work* late,
                                                    const leeway_report* report);
// What was carried so far.
LEEWAY_C_EXPORT leeway_status leeway_late_work_statistics_of(
    const leeway_late_work* late, leeway_late_work_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
