// NCCL's results, and how Leeway's errors become one of them.
#pragma once

#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

// ncclResult_t. Unscoped: the binary interface wants an int.
enum Code : leeway_nccl_result {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // since 2.30; older programs do not know it
};

// Returns the text that ncclGetErrorString() of NCCL `version` returns, byte for byte.
const char* text_of(leeway_nccl_result code, int version);

// Returns NCCL's code for one of Leeway's, for a program that was written for NCCL `version`.
Code code_of(StatusCode code, int version);

// Returns the number that the macro NCCL_VERSION(major, minor, patch) of nccl.h gives.
constexpr int version_code(int major, int minor, int patch) {
  return major <= 2 && minor <= 8 ? major * 1000 + minor * 100 + patch
                                  : major * 10000 + minor * 100 + patch;
}

// Version that ncclGetVersion gives unless LEEWAY_NCCL_VERSION is set. Programs switch features by
// it.
inline constexpr int kVersion = version_code(2, 28, 9);

}  // namespace leeway::nccl
