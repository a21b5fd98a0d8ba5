/* libnccl.so.2: NCCL's names, and behind each of them a jump into libleeway_nccl.so.0.

   A preloaded library is mapped into every child process too, bash and data loaders among them. So
   libnccl.so.2 needs the C library only, and does nothing until a function is called. Then it opens
   Leeway's library in its own folder. Leeway's symbols stay local, so that no other code of the
   process uses Leeway's C++ libraries. Leeway is bound to its own symbols first, so that it does
   not call this file by NCCL's names.

   With LEEWAY_NCCL_DIRECT this file is linked with the library, because sanitizers refuse
   RTLD_DEEPBIND. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "interop/nccl/functions.h"

#define EXPORTED __attribute__((visibility("default")))

#ifdef LEEWAY_NCCL_DIRECT

static const struct leeway_nccl_functions* library(void) {
  return &leeway_nccl_functions_0;
}

#else

#include <stdatomic.h>

#include "interop/nccl/open_beside.h"

enum { kSystemError = 2 };

/* What all functions return if the library cannot be opened. */
#define RESULT(name, parameters, arguments)            \
  static leeway_nccl_result failed_##name parameters { \
    return kSystemError;                               \
  }
#define OTHER(type, name, parameters, arguments, failed) \
  static type failed_##name parameters {                 \
    return failed;                                       \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#pragma GCC diagnostic pop
#undef RESULT
#undef OTHER

static const struct leeway_nccl_functions failed_functions = {
#define RESULT(name, parameters, arguments) .name = failed_##name,
#define OTHER(type, name, parameters, arguments, failed) .name = failed_##name,
    LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#undef RESULT
#undef OTHER
};

static const struct leeway_nccl_functions* open_library(void) {
  const void* const found =
      open_beside(&failed_functions, "libleeway_nccl.so.0", "leeway_nccl_functions_0");
  if (found != NULL) return found;
  fprintf(stderr,
          "libnccl.so.2 of Leeway: %s. It must lie beside this file, and what `ldd` names missing "
          "must be installed.\n",
          dlerror());
  return &failed_functions;
}

/* Threads that call this at the same time may open the library twice, and find the same table. */
static const struct leeway_nccl_functions* library(void) {
  static const struct leeway_nccl_functions* _Atomic opened;
  const struct leeway_nccl_functions* functions =
      atomic_load_explicit(&opened, memory_order_acquire);
  if (functions == NULL) {
    functions = open_library();
    atomic_store_explicit(&opened, functions, memory_order_release);
  }
  return functions;
}

#endif

/* Each function under both of its names. Profilers that intercept `nccl...` call `pnccl...`. */
#define RESULT(name, parameters, arguments) OTHER(leeway_nccl_result, name, parameters, arguments, )
#define OTHER(type, name, parameters, arguments, failed) \
  EXPORTED type nccl##name parameters;                   \
  EXPORTED type nccl##name parameters {                  \
    return library()->name arguments;                    \
  }                                                      \
  EXPORTED type pnccl##name parameters __attribute__((alias("nccl" #name)));

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* return of a void expression */
LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#pragma GCC diagnostic pop

/* NCCL 2.28 and 2.30 export this name, without an alias and without a declaration. */
EXPORTED void ncclResetDebugInitInternal(void);
EXPORTED void ncclResetDebugInitInternal(void) {
  library()->ResetDebugInit();
}
