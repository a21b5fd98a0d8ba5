#include "c_abi/outcome.h"

#include <algorithm>
#include <cstring>

#include "leeway/c/types.h"
#include "leeway/version.h"

namespace leeway::c_abi {
namespace {

constinit thread_local char last_text[Status::kTextMax + 1] = {};

void remember(const char* text) {
  const std::size_t bytes = std::min(std::strlen(text), Status::kTextMax);
  std::memmove(last_text, text, bytes);
  last_text[bytes] = 0;
}

constexpr StatusCode kLastCode = StatusCode::kInternal;
static_assert(LEEWAY_INTERNAL == static_cast<int>(kLastCode));
static_assert(LEEWAY_CANCELLED == static_cast<int>(StatusCode::kCancelled));
static_assert(LEEWAY_UNSUPPORTED == static_cast<int>(StatusCode::kUnsupported));
static_assert(LEEWAY_RESOURCE_EXHAUSTED == static_cast<int>(StatusCode::kResourceExhausted));
static_assert(LEEWAY_UNAVAILABLE == static_cast<int>(StatusCode::kUnavailable));
static_assert(LEEWAY_PEER_LOST == static_cast<int>(StatusCode::kPeerLost));
static_assert(LEEWAY_DEADLINE_EXCEEDED == static_cast<int>(StatusCode::kDeadlineExceeded));
static_assert(LEEWAY_MISMATCH == static_cast<int>(StatusCode::kMismatch));
static_assert(LEEWAY_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(LEEWAY_OK == static_cast<int>(StatusCode::kOk));

}  // namespace

leeway_status settle(const Status& status) {
  if (!status.ok()) remember(status.c_str());
  return static_cast<leeway_status>(status.code());
}

Status status_of(leeway_status code, const char* callback) {
  if (code == LEEWAY_OK) return Status();
  const bool known = code > 0 && code <= static_cast<int>(kLastCode);
  return Status::error(known ? static_cast<StatusCode>(code) : StatusCode::kInternal,
                       "the callback %s returned %d: %.200s", callback, code, last_text);
}

}  // namespace leeway::c_abi

using leeway::c_abi::last_text;

const char* leeway_last_error(void) {
  return last_text;
}

leeway_status leeway_fail(leeway_status status, const char* text) {
  leeway::c_abi::remember(text != nullptr ? text : "");
  return status;
}

const char* leeway_status_name(leeway_status status) {
  if (status < 0 || status > LEEWAY_INTERNAL) return "unknown";
  return leeway::to_string(static_cast<leeway::StatusCode>(status)).data();
}

const char* leeway_version(void) {
  return LEEWAY_VERSION_STRING;
}
