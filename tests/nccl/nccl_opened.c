/* As a program that opens NCCL by its name; says which library it got. It names `environ`, as
   programs do that start other programs. This puts the variable into the program itself, and not
   where the library's own scope has it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  if (environ == NULL || *environ == NULL) return 2;
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == NULL) return 3;
  int (*get_version)(int*) = NULL;
  *(void**)&get_version = dlsym(library, "ncclGetVersion");
  Dl_info where;
  int version = 0;
  if (get_version == NULL || get_version(&version) != 0) return 4;
  if (dladdr(*(void**)&get_version, &where) == 0) return 5;
  printf("%d %s\n", version, where.dli_fname);
  return 0;
}
