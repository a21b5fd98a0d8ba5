/* A libnccl.so.2 that poses as NVIDIA's: Leeway's own drop-in once more, from another path, behind
   names that count their calls and fail when they are told to.

   NCCL_DOUBLE_FAILS="AllGather:2": the second ncclAllGather of the process, and all later ones,
   answer ncclSystemError. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/nccl/functions.h"

#define EXPORTED __attribute__((visibility("default")))

enum { kSystemError = 2 };

/* Of each name, in the order of the list. */
enum {
#define RESULT(name, parameters, arguments) kCall##name,
#define OTHER(type, name, parameters, arguments, failed) kCall##name,
  LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#undef RESULT
#undef OTHER
      kCalls
};
static const char* const names[kCalls] = {
#define RESULT(name, parameters, arguments) #name,
#define OTHER(type, name, parameters, arguments, failed) #name,
    LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#undef RESULT
#undef OTHER
};
static atomic_int counts[kCalls];

/* How often the process called ncclNAME. */
EXPORTED int nccl_double_calls(const char* name);
EXPORTED int nccl_double_calls(const char* name) {
  for (int i = 0; i < kCalls; ++i) {
    if (strcmp(names[i], name) == 0) return counts[i];
  }
  return -1;
}

static int fails(int call) {
  const int count = ++counts[call];
  const char* const told = getenv("NCCL_DOUBLE_FAILS");
  const char* const colon = told != NULL ? strchr(told, ':') : NULL;
  if (colon == NULL || strncmp(told, names[call], (size_t)(colon - told)) != 0 ||
      names[call][colon - told] != '\0')
    return 0;
  return count >= atoi(colon + 1);
}

/* The copy of Leeway's library, which lies beside this file. */
static const struct leeway_nccl_functions* library(void) {
  static const struct leeway_nccl_functions* _Atomic opened;
  if (opened != NULL) return opened;
  /* Read by the drop-in in front already, and nothing to NVIDIA's library. */
  unsetenv("LEEWAY_NCCL_POLICY");
  unsetenv("LEEWAY_NCCL_TRACE");
  Dl_info self;
  char path[4096] = "";
  if (dladdr(&counts, &self) != 0) {
    const char* const slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%.*slibleeway_nccl.so.0", (int)(slash + 1 - self.dli_fname),
             self.dli_fname);
  }
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  const void* const found = handle != NULL ? dlsym(handle, "leeway_nccl_functions_0") : NULL;
  if (found == NULL) {
    fprintf(stderr, "the double of NVIDIA's NCCL: %s\n", dlerror());
    abort();
  }
  opened = found;
  return opened;
}

#define RESULT(name, parameters, arguments)           \
  EXPORTED leeway_nccl_result nccl##name parameters;  \
  EXPORTED leeway_nccl_result nccl##name parameters { \
    if (fails(kCall##name)) return kSystemError;      \
    return library()->name arguments;                 \
  }
#define OTHER(type, name, parameters, arguments, failed) \
  EXPORTED type nccl##name parameters;                   \
  EXPORTED type nccl##name parameters {                  \
    ++counts[kCall##name];                               \
    return library()->name arguments;                    \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* return of a void expression */
LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER)
#pragma GCC diagnostic pop
