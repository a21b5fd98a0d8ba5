// Turns exceptions of dependencies into a Status at the place of the call.
#pragma once

#include <new>
#include <system_error>
#include <utility>

#include "base/descriptors.h"
#include "leeway/status.h"

namespace leeway {

// Calls `body`, and returns its Status or Result. Asio throws if it gets no descriptor, and any
// code may throw if memory runs out. Either exception becomes kResourceExhausted, with a text that
// begins with `what`.
template <typename Body>
auto without_exceptions(const char* what, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return Status::error(StatusCode::kResourceExhausted, "%s: no memory is left", what);
  } catch (const std::system_error& failure) {
    return Status::error(StatusCode::kResourceExhausted, "%s: %s%s", what, failure.what(),
                         descriptor_hint(failure.code().value()));
  }
}

}  // namespace leeway
