// C: status codes, the text of the last failure, and the library's version.
#ifndef LEEWAY_C_STATUS_H
#define LEEWAY_C_STATUS_H

#include <stddef.h>
#include <stdint.h>

// Marks a function that libleeway.so offers to C.
#define LEEWAY_C_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Outcome of a call: one of the numbers below, equal to those of leeway::StatusCode.
typedef int32_t leeway_status;
// Values of leeway_status.
enum {
  LEEWAY_OK = 0,                  // success
  LEEWAY_INVALID_ARGUMENT = 1,    // an argument is wrong; no element was sent
  LEEWAY_MISMATCH = 2,            // two ranks disagree; the text names both sides
  LEEWAY_DEADLINE_EXCEEDED = 3,   // not complete in time; the text names rank, operation and peer
  LEEWAY_PEER_LOST = 4,           // a peer left or is dead
  LEEWAY_UNAVAILABLE = 5,         // rendezvous or network not reachable; trying again may help
  LEEWAY_RESOURCE_EXHAUSTED = 6,  // a limit of Leeway or of the machine, memory included
  LEEWAY_UNSUPPORTED = 7,         // the combination has no meaning or is not built in
  LEEWAY_CANCELLED = 8,           // the communicator was aborted or freed
  LEEWAY_INTERNAL = 9             // a defect of Leeway
};

// Returns the name, such as "deadline_exceeded", or "unknown" for any other number. Never NULL,
// valid for ever.
LEEWAY_C_EXPORT const char* leeway_status_name(leeway_status status);

// One line about this thread's last call that failed: what went wrong, where, and what to do. Empty
// if no call has failed. Valid until this thread's next call that fails. Never NULL.
LEEWAY_C_EXPORT const char* leeway_last_error(void);

// For callbacks that fail: sets the text of leeway_last_error() on this thread and returns
// `status`. Text beyond 316 bytes is cut. With NULL the text is empty.
LEEWAY_C_EXPORT leeway_status leeway_fail(leeway_status status, const char* text);

// The version of the running library: "0.1.0". Valid for ever.
LEEWAY_C_EXPORT const char* leeway_version(void);

#ifdef __cplusplus
}
#endif

#endif
