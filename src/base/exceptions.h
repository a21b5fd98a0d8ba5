// What dependencies throw, turned into a Status where it leaves them.
#pragma once

#include <new>
#include <system_error>
#include <utility>

#include "base/descriptors.h"
#include "leeway/status.h"

namespace leeway {

// What `body` returns, a Status or a Result. Asio throws where it gets no descriptor, everybody
// where there is no memory: kResourceExhausted, which begins with `what`.
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
