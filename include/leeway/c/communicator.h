// C: the communicator, a fixed group of ranks.
#ifndef LEEWAY_C_COMMUNICATOR_H
#define LEEWAY_C_COMMUNICATOR_H

#include "leeway/c/options.h"
#include "leeway/c/work.h"

#ifdef __cplusplus
extern "C" {
#endif

// A group of ranks. Calls may come from several threads.
typedef struct leeway_communicator leeway_communicator;
// A communicator that is being made in the background. Thread-safe, except for
// leeway_pending_free().
typedef struct leeway_pending leeway_pending;
// A registration of memory with the network device (leeway_register_memory()).
typedef struct leeway_registration leeway_registration;

// The color of a rank that does not take part in a split.
#define LEEWAY_NO_COLOR (-1)

// Joins the group. Blocks until all ranks have met, or fails within join_timeout, naming the ranks
// that are missing.
LEEWAY_C_EXPORT leeway_status leeway_create(const leeway_options* options,
                                            leeway_communicator** communicator);
// Like leeway_create(), but in the background.
LEEWAY_C_EXPORT leeway_status leeway_create_async(const leeway_options* options,
                                                  leeway_pending** pending);
// Makes `size` communicators connected inside this process; rank i becomes communicators[i]. If it
// fails, all are NULL.
LEEWAY_C_EXPORT leeway_status leeway_create_inproc(int32_t size, const leeway_options* options,
                                                   leeway_communicator** communicators);
// Leaves the group and frees the handle, like the destructor of leeway::Communicator. Takes a few
// round trips if all peers answer.
LEEWAY_C_EXPORT void leeway_communicator_free(leeway_communicator* communicator);

// Makes a communicator of the ranks that give the same color, ordered by key. All ranks must call
// it, at the same place among their collectives. The result is NULL if the color is
// LEEWAY_NO_COLOR.
LEEWAY_C_EXPORT leeway_status leeway_split(leeway_communicator* communicator, int32_t color,
                                           int32_t key, leeway_communicator** part);
// Like leeway_split(), but in the background.
LEEWAY_C_EXPORT leeway_status leeway_split_async(leeway_communicator* communicator, int32_t color,
                                                 int32_t key, leeway_pending** pending);
// Makes a communicator without the excluded ranks, which need not call this function and may be
// dead. Works after leeway_abort() too. Returns LEEWAY_UNAVAILABLE if not all other ranks called it
// in time with the same exclusions.
LEEWAY_C_EXPORT leeway_status leeway_shrink(leeway_communicator* communicator,
                                            const leeway_rank* excluded, size_t count,
                                            leeway_communicator** rest);
// Like leeway_shrink(), but in the background.
LEEWAY_C_EXPORT leeway_status leeway_shrink_async(leeway_communicator* communicator,
                                                  const leeway_rank* excluded, size_t count,
                                                  leeway_pending** pending);

// Returns 1 if leeway_pending_wait() would return at once, else 0. Returns 0 for NULL.
LEEWAY_C_EXPORT int32_t leeway_pending_done(const leeway_pending* pending);
// Runs `callback` when the pending call is done, under the rules of leeway_work_on_done().
LEEWAY_C_EXPORT leeway_status leeway_pending_on_done(leeway_pending* pending,
                                                     leeway_done_callback callback, void* user);
// Waits until the pending call is done, and hands over the communicator or the error. Returns
// LEEWAY_INVALID_ARGUMENT if the outcome was handed over before.
LEEWAY_C_EXPORT leeway_status leeway_pending_wait(leeway_pending* pending,
                                                  leeway_communicator** communicator);
// Aborts the pending call. The call is then done, and its outcome is LEEWAY_CANCELLED.
LEEWAY_C_EXPORT leeway_status leeway_pending_abort(leeway_pending* pending);
// Frees the handle; aborts the call if it is not done.
LEEWAY_C_EXPORT void leeway_pending_free(leeway_pending* pending);

// Aborts at once, from any thread: operations in flight fail with LEEWAY_CANCELLED, and their
// buffers are free for the caller. Afterwards only leeway_communicator_free(), leeway_shrink() and
// the getters may be used.
LEEWAY_C_EXPORT leeway_status leeway_abort(leeway_communicator* communicator);
// Returns LEEWAY_OK, or the reason why calls fail. May be called from any thread, and costs one
// atomic load. Does not change the text of leeway_last_error().
LEEWAY_C_EXPORT leeway_status leeway_state(const leeway_communicator* communicator);
// Like leeway_state(), but also sets the text of leeway_last_error().
LEEWAY_C_EXPORT leeway_status leeway_explain(const leeway_communicator* communicator);

// Rank of this process, 0 .. size - 1; LEEWAY_NO_RANK for NULL.
LEEWAY_C_EXPORT leeway_rank leeway_rank_of(const leeway_communicator* communicator);
// Number of ranks in the group; 0 for NULL.
LEEWAY_C_EXPORT int32_t leeway_size_of(const leeway_communicator* communicator);
// Length in bytes of the largest datagram that is sent; all ranks agree on it. 0 for NULL.
LEEWAY_C_EXPORT size_t leeway_datagram_bytes(const leeway_communicator* communicator);
// The transport that carries datagrams; LEEWAY_TRANSPORT_AUTOMATIC only for NULL.
LEEWAY_C_EXPORT leeway_transport leeway_transport_of(const leeway_communicator* communicator);

// Registers memory with the device that carries datagrams, like
// leeway::Communicator::register_memory(). If it returns LEEWAY_RESOURCE_EXHAUSTED, the text names
// the limit on locked memory, and calls work without the registration. Thread-safe.
LEEWAY_C_EXPORT leeway_status leeway_register_memory(leeway_communicator* communicator,
                                                     const void* memory, size_t bytes,
                                                     leeway_registration** registration);
// Ends the registration. Call it before the memory or the communicator is freed.
LEEWAY_C_EXPORT void leeway_registration_free(leeway_registration* registration);

// Tells the library that a payload source has encoded a chunk, or that a sink has used one. May be
// called from any thread while the communicator exists.
LEEWAY_C_EXPORT leeway_status leeway_notify_payload(leeway_communicator* communicator);

// A callback that receives one counter: its name, valid during the call, and its value.
typedef void (*leeway_counter_callback)(void* user, const char* name, uint64_t value);
// Calls `callback` with the value of each counter since creation, on this thread. Thread-safe.
LEEWAY_C_EXPORT leeway_status leeway_counters(const leeway_communicator* communicator,
                                              leeway_counter_callback callback, void* user);

#ifdef __cplusplus
}
#endif

#endif
