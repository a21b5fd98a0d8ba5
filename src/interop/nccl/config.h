// ncclConfig_t: what a program asks of one communicator.
#pragma once

#include <string>

#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

struct Config {
  bool blocking = true;
  std::string name;  // commName; empty: none
};

// `asked` may be null: then it is `inherited`. Members that the program left alone, and those that
// are newer than its header, come from `inherited` too. kInvalidArgument in NCCL's words.
Result<Config> read_config(const leeway_nccl_config* asked, const Config& inherited);

}  // namespace leeway::nccl
