// Failures of the library as Python exceptions, one class for each StatusCode.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "leeway/status.h"

namespace leeway::python {

// Thrown by bindings; becomes the Python exception of its code.
class Failure {
 public:
  explicit Failure(const Status& status) : status_(status) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// Throws InvalidArgument with a text that `format` makes, as printf().
template <typename... Arguments>
[[noreturn]] void refuse(const char* format, Arguments... arguments) {
  throw Failure(Status::error(StatusCode::kInvalidArgument, format, arguments...));
}

// Returns the value, or throws Failure.
template <typename T>
T value_of(Result<T>&& result) {
  if (!result.ok()) throw Failure(result.status());
  return std::move(*result);
}

inline void check(const Status& status) {
  if (!status.ok()) throw Failure(status);
}

// Sets the Python exception that belongs to the status.
void set_python_error(const Status& status);

}  // namespace leeway::python
