/* C, for the two libraries that programs load: opens Leeway's library, which lies near their files.
   A file that includes this one defines _GNU_SOURCE first. */
#ifndef LEEWAY_INTEROP_NCCL_OPEN_BESIDE_H
#define LEEWAY_INTEROP_NCCL_OPEN_BESIDE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens the library `name`, a path from the folder of the file that `self` is in. The library's
   symbols stay local, it is bound to its own symbols first, and it is never closed. Returns the
   address of its `symbol`, or null; dlerror() says why. */
static inline const void* open_beside(const void* self, const char* name, const char* symbol) {
  Dl_info file;
  const char* const slash = dladdr(self, &file) != 0 ? strrchr(file.dli_fname, '/') : NULL;
  const int length = slash != NULL ? (int)(slash + 1 - file.dli_fname) : 0;
  char* path = NULL;
  if (asprintf(&path, "%.*s%s", length, slash != NULL ? file.dli_fname : "", name) < 0) return NULL;
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  free(path);
  return opened != NULL ? dlsym(opened, symbol) : NULL;
}

#endif
