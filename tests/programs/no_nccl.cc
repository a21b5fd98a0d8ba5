// For program_swarm, which has no NCCL interface; nccl_program_swarm has one.
#include "programs/library.h"

namespace leeway::programs {

std::unique_ptr<Library> nccl_library(const Program&, const Meeting&) {
  return nullptr;
}

}  // namespace leeway::programs
