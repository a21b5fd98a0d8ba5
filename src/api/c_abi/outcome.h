// Converts C++ outcomes to status codes and the text of leeway_last_error().
#pragma once

#include <exception>
#include <new>

#include "leeway/c/status.h"
#include "leeway/status.h"

namespace leeway::c_abi {

// Returns the code of `status`. Keeps the text of a failure for this thread's leeway_last_error().
leeway_status settle(const Status& status);

// Returns a Status with the code that a callback of the program returned, and with the text that
// the callback left by leeway_fail().
Status status_of(leeway_status code, const char* callback);

// Runs `body`, the body of the C function `function`. Exceptions become status codes.
template <typename Body>
leeway_status guarded(const char* function, Body&& body) noexcept {
  try {
    return settle(body(function));
  } catch (const std::bad_alloc&) {
    return settle(Status::error(StatusCode::kResourceExhausted, "%s: no memory is left", function));
  } catch (const std::exception& exception) {
    return settle(Status::error(StatusCode::kInternal, "%s: %s", function, exception.what()));
  } catch (...) {
    return settle(Status::error(StatusCode::kInternal, "%s: an unknown exception", function));
  }
}

// Returns kInvalidArgument, with the argument's `name`, if `argument` is null.
inline Status must_be_there(const char* function, const char* name, const void* argument) {
  if (argument != nullptr) return Status();
  return Status::error(StatusCode::kInvalidArgument, "%s: %s is NULL", function, name);
}

// Like must_be_there() above, for an array, which may be null if it has no elements.
inline Status must_be_there(const char* function, const char* name, const void* data,
                            std::size_t count) {
  return count == 0 ? Status() : must_be_there(function, name, data);
}

// Checks `out`, where the caller wants a handle, and clears it: the handle stays NULL unless the
// call succeeds.
template <typename Handle>
Status clear(const char* function, const char* name, Handle** out) {
  if (Status status = must_be_there(function, name, out); !status.ok()) return status;
  *out = nullptr;
  return Status();
}

// Returns kInvalidArgument if `index` is not below `count`.
inline Status check_index(const char* function, std::size_t index, std::size_t count) {
  if (index < count) return Status();
  return Status::error(StatusCode::kInvalidArgument, "%s: index %zu, and there are %zu", function,
                       index, count);
}

}  // namespace leeway::c_abi

// Evaluates a Status in the body of a function. If it is not ok, the function returns it.
#define LEEWAY_C_TRY(...)                                        \
  do {                                                           \
    if (Status tried = (__VA_ARGS__); !tried.ok()) return tried; \
  } while (false)
