// Leeway for C99, and for languages that call C: the counterpart of leeway/leeway.h. C++ may
// include it too.
//
//   leeway_options options = LEEWAY_OPTIONS_INIT;
//   leeway_status status =
//       leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT);
//   if (status == LEEWAY_OK) status = leeway_create(&options, &communicator);
//   if (status != LEEWAY_OK) fprintf(stderr, "%s\n", leeway_last_error());
//
// Handles. A function that makes something hands out a pointer to an opaque struct. The matching
// ..._free function frees it; it accepts NULL as well. A function that fails hands out NULL.
//
// Errors. A function that can fail returns a leeway_status; leeway_last_error() then has the text.
// LEEWAY_INVALID_ARGUMENT is the status for a required handle or array that is NULL, and for a
// number that names nothing (a data type of 99). No C++ exception leaves a function; if memory runs
// out, the function fails with LEEWAY_RESOURCE_EXHAUSTED.
//
// Structs. A struct of options begins with its size and has a LEEWAY_..._INIT with all defaults. A
// program that was compiled against an older header gives a shorter struct: the members that it
// lacks have their defaults. A longer struct, of a newer header, is accepted if all bytes that this
// library does not know are 0; else LEEWAY_INVALID_ARGUMENT names the struct and both sizes. NULL
// in place of options means the defaults. Structs that the library fills are filled up to their
// size, and bytes that this library does not know become 0.
//
// Units. Counts are elements, sizes end in bytes, times are nanoseconds, fractions are 0 to 1.
// Flags are 0 or 1; any other number counts as 1.
//
// Threads. As in C++: calls of one communicator may come from several threads; other handles are
// for one thread at a time unless their functions say more. A thread that is in a call must not be
// cancelled (pthread_cancel).
//
// Callbacks run on a thread of Leeway's or of a caller. They must not throw.
#ifndef LEEWAY_C_H
#define LEEWAY_C_H

#include "leeway/c/adam_state.h"      // IWYU pragma: export
#include "leeway/c/codec.h"           // IWYU pragma: export
#include "leeway/c/collectives.h"     // IWYU pragma: export
#include "leeway/c/communicator.h"    // IWYU pragma: export
#include "leeway/c/compute_budget.h"  // IWYU pragma: export
#include "leeway/c/late_work.h"       // IWYU pragma: export
#include "leeway/c/options.h"         // IWYU pragma: export
#include "leeway/c/payload.h"         // IWYU pragma: export
#include "leeway/c/rendezvous.h"      // IWYU pragma: export
#include "leeway/c/replica.h"         // IWYU pragma: export
#include "leeway/c/report.h"          // IWYU pragma: export
#include "leeway/c/status.h"          // IWYU pragma: export
#include "leeway/c/types.h"           // IWYU pragma: export
#include "leeway/c/work.h"            // IWYU pragma: export

#endif
