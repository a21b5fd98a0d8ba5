// Leeway for C and for languages that call C: the twin of leeway/leeway.h. C99; C++ may include it
// too.
//
//   leeway_options options = LEEWAY_OPTIONS_INIT;
//   if (leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT) != LEEWAY_OK
//   ||
//       leeway_create(&options, &communicator) != LEEWAY_OK) {
//     fprintf(stderr, "%s\n", leeway_last_error());
//   }
//
// Handles. A function that makes something hands out a pointer to an opaque struct, which its
// ..._free function ends; that takes NULL as well. Where a function fails, it hands out NULL.
//
// Errors. A function that can fail returns a leeway_status. leeway_last_error() then has the text.
// A handle or an array that must be there and is NULL is LEEWAY_INVALID_ARGUMENT, and so is a
// number that names nothing (a data type of 99). No C++ exception leaves a function; where memory
// is short, the function fails with LEEWAY_RESOURCE_EXHAUSTED.
//
// Structs of options begin with their size, and each has a LEEWAY_..._INIT with all defaults. A
// program that was compiled against an older header gives a shorter struct: members that it lacks
// have their defaults. A longer struct, of a newer header, is taken if all bytes that this library
// does not know are 0; else LEEWAY_INVALID_ARGUMENT names the struct and both sizes. NULL in place
// of options means the defaults. Structs that the library fills are filled up to their size, and
// bytes that this library does not know become 0.
//
// Units. Counts are elements, sizes end in bytes, times are nanoseconds, fractions are 0 to 1.
// Flags are 0 or 1; any other number counts as 1.
//
// Threads. As in C++: calls of one communicator may come from several threads; other handles are
// for one thread at a time unless their functions say more.
//
// Callbacks run on threads of Leeway's or on that of a caller. They must not throw.
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
