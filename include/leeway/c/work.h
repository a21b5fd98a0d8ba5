// C: an operation in flight.
#ifndef LEEWAY_C_WORK_H
#define LEEWAY_C_WORK_H

#include "leeway/c/report.h"

#ifdef __cplusplus
extern "C" {
#endif

// An operation in flight. For one waiter at a time; leeway_work_on_done() from any thread.
typedef struct leeway_work leeway_work;

// Called once. Should do no more than queue what is to happen, and must not block. It may start
// operations and free handles, its own communicator too, which is then aborted.
typedef void (*leeway_done_callback)(void* user);

// 1 once leeway_work_wait() would return at once, else 0. Drives nothing. 0 for NULL.
LEEWAY_C_EXPORT int32_t leeway_work_done(const leeway_work* work);
// The same, but takes part in the work first, if no other thread is at it. Never blocks.
LEEWAY_C_EXPORT int32_t leeway_work_test(leeway_work* work);
// Drives until the operation is done, then returns its outcome, each time. `report` may be NULL. In
// a callback: LEEWAY_INVALID_ARGUMENT unless it is done.
LEEWAY_C_EXPORT leeway_status leeway_work_wait(leeway_work* work, leeway_report* report);
// Calls `callback` when the operation is done: on the thread that finds that out, or at once.
LEEWAY_C_EXPORT leeway_status leeway_work_on_done(leeway_work* work, leeway_done_callback callback,
                                                  void* user);
// Drives until all are done; the first error in their order. Entries that are NULL are passed over,
// here and below.
LEEWAY_C_EXPORT leeway_status leeway_work_wait_all(leeway_work* const* works, size_t count);
// Drives until one is done, and gives its index: the lowest if several are, `count` if all are
// NULL.
LEEWAY_C_EXPORT leeway_status leeway_work_wait_any(leeway_work* const* works, size_t count,
                                                   size_t* index);
// Ends the handle, not the operation: its buffers must stay until it is done.
LEEWAY_C_EXPORT void leeway_work_free(leeway_work* work);

#ifdef __cplusplus
}
#endif

#endif
