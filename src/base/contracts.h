// LEEWAY_ASSERT states a condition on which the code relies. It is active in release builds, too,
// so it belongs in control paths and not in per-element loops. It must not be used on bytes from
// the network: those are refused and counted.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace leeway::internal {

[[noreturn, gnu::cold, gnu::noinline]] inline void contract_broken(const char* condition,
                                                                   const char* file, int line) {
  std::fprintf(stderr, "leeway: %s:%d: contract broken: %s\n", file, line, condition);
  std::abort();
}

}  // namespace leeway::internal

#define LEEWAY_ASSERT(condition)                                           \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::leeway::internal::contract_broken(#condition, __FILE__, __LINE__); \
  } while (false)
