// The functions of libnccl.so.2, in the order of functions.h. Each is a function of C: no exception
// leaves it.
#pragma once

#include <exception>
#include <new>

#include "interop/nccl/debug.h"
#include "interop/nccl/functions.h"
#include "interop/nccl/group.h"

namespace leeway::nccl {

// Runs a call and returns its code; an exception becomes a code, too. The first error of a call in
// a group becomes the group's result.
template <typename Call>
leeway_nccl_result guarded(Call call) noexcept {
  try {
    return Group::mine().note(call());
  } catch (const std::bad_alloc&) {
    return Group::mine().note(failed(kSystemError, "out of memory"));
  } catch (const std::exception& error) {
    return Group::mine().note(failed(kInternalError, error.what()));
  }
}

// "%s : %s argument is NULL", as NCCL says it.
inline Code null_argument(const char* title, const char* argument) {
  return failed_with(kInvalidArgument, "%s : %s argument is NULL", title, argument);
}

namespace calls {
#define LEEWAY_NCCL_DECLARE(name, parameters, arguments) leeway_nccl_result name parameters;
#define LEEWAY_NCCL_DECLARE_OTHER(type, name, parameters, arguments, failed) type name parameters;
LEEWAY_NCCL_FUNCTIONS(LEEWAY_NCCL_DECLARE, LEEWAY_NCCL_DECLARE_OTHER)
#undef LEEWAY_NCCL_DECLARE
#undef LEEWAY_NCCL_DECLARE_OTHER
}  // namespace calls

}  // namespace leeway::nccl
