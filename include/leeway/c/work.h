// C: handles of operations in flight.
#ifndef LEEWAY_C_WORK_H
#define LEEWAY_C_WORK_H

#include "leeway/c/report.h"

#ifdef __cplusplus
extern "C" {
#endif

// An operation in flight. For one waiter at a time; leeway_work_on_done() may be called from any
// thread.
typedef struct leeway_work leeway_work;

// A callback, called once. It should only queue further work, and must not block. It may start
// operations and free handles, even its own communicator, which is then aborted.
typedef void (*leeway_done_callback)(void* user);

// Returns 1 if leeway_work_wait() would return at once, else 0. Does not drive progress. Returns 0
// for NULL.
LEEWAY_C_EXPORT int32_t leeway_work_done(const leeway_work* work);
// Like leeway_work_done(), but takes a step of progress first, if no other thread drives. Never
// blocks.
LEEWAY_C_EXPORT int32_t leeway_work_test(leeway_work* work);
// Drives progress until the operation is done, then returns its outcome; repeated calls return the
// same. `report` may be NULL. Called in a callback, it returns LEEWAY_INVALID_ARGUMENT unless the
// operation is done.
LEEWAY_C_EXPORT leeway_status leeway_work_wait(leeway_work* work, leeway_report* report);
// Calls `callback` when the operation is done: at once if it is done already, else on the thread
// that finds it done.
LEEWAY_C_EXPORT leeway_status leeway_work_on_done(leeway_work* work, leeway_done_callback callback,
                                                  void* user);
// Drives progress until all `works` are done. Returns the first error, in the order of `works`.
// Entries that are NULL are skipped.
LEEWAY_C_EXPORT leeway_status leeway_work_wait_all(leeway_work* const* works, size_t count);
// Drives progress until one of `works` is done, and gives its index: the lowest if several are
// done, `count` if all entries are NULL.
LEEWAY_C_EXPORT leeway_status leeway_work_wait_any(leeway_work* const* works, size_t count,
                                                   size_t* index);
// Frees the handle, but does not end the operation: its buffers must stay until it is done.
LEEWAY_C_EXPORT void leeway_work_free(leeway_work* work);

#ifdef __cplusplus
}
#endif

#endif
