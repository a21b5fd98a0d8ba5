#include "interop/nccl/codes.h"

namespace leeway::nccl {
namespace {

constexpr int kTimeoutVersion = version_code(2, 30, 0);

}  // namespace

const char* text_of(leeway_nccl_result code, int version) {
  switch (code) {
    case kSuccess:
      return "no error";
    case kCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case kInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "NCCL operation in progress";
    case kTimeout:
      return version >= kTimeoutVersion ? "timeout" : "unknown result code";
    default:
      return "unknown result code";
  }
}

Code code_of(StatusCode code, int version) {
  switch (code) {
    case StatusCode::kOk:
      return kSuccess;
    case StatusCode::kInvalidArgument:
      return kInvalidArgument;
    case StatusCode::kMismatch:
    case StatusCode::kUnsupported:
      return kInvalidUsage;
    case StatusCode::kDeadlineExceeded:
      return version >= kTimeoutVersion ? kTimeout : kRemoteError;
    case StatusCode::kPeerLost:
    case StatusCode::kUnavailable:
      return kRemoteError;
    case StatusCode::kResourceExhausted:
      return kSystemError;
    case StatusCode::kCancelled:
    case StatusCode::kInternal:
      return kInternalError;
  }
  return kInternalError;
}

}  // namespace leeway::nccl
