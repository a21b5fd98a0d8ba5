// C: carries a contribution that missed its round into the next one. leeway/late_work.h shows a
// training step and has the rules.
#ifndef LEEWAY_C_LATE_WORK_H
#define LEEWAY_C_LATE_WORK_H

#include "leeway/c/options.h"
#include "leeway/c/report.h"

#ifdef __cplusplus
extern "C" {
#endif

// The late contributions of one float tensor. For one thread at a time.
typedef struct leeway_late_work leeway_late_work;

// Counts since creation. Their unit is one rank's contribution to the shard of one owner.
typedef struct leeway_late_work_statistics {
  size_t size;                // bytes of this struct
  uint64_t missed;            // contributions that their owner did not use
  uint64_t carried;           // contributions that were added to a later call
  uint64_t dropped;           // missed again after being carried, or could not be carried
  uint64_t elements_carried;  // elements of the carried contributions
  double weight_carried;      // their units of work, summed over owners
} leeway_late_work_statistics;
// A struct of zeros, for leeway_late_work_statistics_of().
#define LEEWAY_LATE_WORK_STATISTICS_INIT \
  { sizeof(leeway_late_work_statistics), 0, 0, 0, 0, 0.0 }

// Makes a leeway_late_work for a tensor of `count` float elements.
LEEWAY_C_EXPORT leeway_status leeway_late_work_create(size_t count, leeway_late_work** late);
// Frees the handle.
LEEWAY_C_EXPORT void leeway_late_work_free(leeway_late_work* late);
// Call before each reduction, with its gradient and options. Adds the contributions that were
// missed last time to `gradient`, and sets owner_weights, owner_weight_count and confirm_use in
// `options`. The weights are valid until the next call. Returns LEEWAY_INVALID_ARGUMENT and changes
// nothing if `count` or op is wrong, the caller has set weights, or `options` is a shorter struct,
// which lacks these members.
LEEWAY_C_EXPORT leeway_status leeway_late_work_add_to(leeway_late_work* late, float* gradient,
                                                      size_t count,
                                                      leeway_collective_options* options);
// Records which owners missed the contribution. Call after a reduction that succeeded.
LEEWAY_C_EXPORT leeway_status leeway_late_work_keep(leeway_late_work* late,
                                                    const leeway_report* report);
// Gives the counts so far.
LEEWAY_C_EXPORT leeway_status leeway_late_work_statistics_of(
    const leeway_late_work* late, leeway_late_work_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
