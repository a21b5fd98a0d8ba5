// Lines in NCCL's log. Only calls of NCCL write them. A thread of Leeway's never does, as it might
// call into NCCL while NCCL is being unloaded.
#pragma once

#include "interop/nccl/codes.h"
#include "interop/nccl_net/abi.h"
#include "leeway/status.h"

namespace leeway::nccl_net {

using nccl::Code;

// Sets the logger of the process. Null turns the log off.
void log_to(leeway_nccl_logger logger);

// Writes a line at NCCL_DEBUG=WARN, "NET/Leeway : what: why", and returns the code for NCCL.
Code failed(const Status& status, const char* what);
// Writes a line at NCCL_DEBUG=INFO. printf-style.
[[gnu::format(printf, 1, 2)]] void inform(const char* format, ...);

}  // namespace leeway::nccl_net
