#include "driving/callback.h"

namespace leeway::driving {
namespace {

thread_local int callback_depth = 0;

struct InCallback {
  InCallback() { ++callback_depth; }
  ~InCallback() { --callback_depth; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

}  // namespace

bool in_callback() {
  return callback_depth > 0;
}

void call(std::span<const internal::Callback> callbacks) {
  const InCallback guard;
  for (const internal::Callback& callback : callbacks) callback();
}

}  // namespace leeway::driving
