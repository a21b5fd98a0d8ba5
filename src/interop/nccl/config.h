// ncclConfig_t: what a program asks of one communicator.
#pragma once

#include <string>

#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

struct Config {
  bool blocking = true;
  std::string name;  // commName; empty: none
  int version = 0;   // NCCL_VERSION_CODE of the header that the program was compiled with
  // What means nothing to Leeway, for NVIDIA's library: numbers as they were asked for, and
  // netName.
  leeway_nccl_config numbers = nothing_asked();
  std::string net_name;

  // NCCL_CONFIG_INITIALIZER of 2.30.
  static leeway_nccl_config nothing_asked();
};

// `asked` may be null: then it is `inherited`. Members that the program left alone, and those that
// are newer than its header, come from `inherited` too. kInvalidArgument in NCCL's words.
Result<Config> read_config(const leeway_nccl_config* asked, const Config& inherited);

// The config whole, as a program would hand it over. Its texts are those of `config`.
leeway_nccl_config passed_on(const Config& config);

}  // namespace leeway::nccl
