// Configuration that a program gives one communicator (ncclConfig_t).
#pragma once

#include <string>

#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

struct Config {
  bool blocking = true;
  std::string name;  // commName; empty if it has none
};

// Returns `inherited`, changed by the members that the program set in `asked`, which may be null.
// Members that are newer than the program's header are taken as not set. Returns kInvalidArgument,
// with NCCL's text, if a value is invalid.
Result<Config> read_config(const leeway_nccl_config* asked, const Config& inherited);

}  // namespace leeway::nccl
