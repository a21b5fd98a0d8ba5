// The NCCL interface of program_swarm, which has none. The program nccl_program_swarm has one.
#include "programs/library.h"

namespace leeway::programs {

std::unique_ptr<Library> nccl_library(const Program&, const Meeting&) {
  return nullptr;
}

}  // namespace leeway::programs
