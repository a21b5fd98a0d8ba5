#include "base/environment.h"

#include <dlfcn.h>
#include <unistd.h>

namespace leeway {
namespace {

// A program that refers to `environ` contains the variable itself, and the C library uses that
// copy. A library that was opened with RTLD_DEEPBIND would find the C library's own variable
// instead, which stays null. So the program is asked first.
char*** find() {
  void* const program = ::dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return &environ;
  void* const found = ::dlsym(program, "environ");
  ::dlclose(program);
  return found == nullptr ? &environ : static_cast<char***>(found);
}

}  // namespace

const char* const* environment() {
  static char*** const variables = find();
  static const char* const none = nullptr;
  if (environ != *variables) environ = *variables;
  return *variables == nullptr ? &none : *variables;
}

}  // namespace leeway
