// program_swarm has no NCCL; nccl_program_swarm has.
#include "programs/library.h"

namespace leeway::programs {

std::unique_ptr<Library> nccl_library(const Program&, const Meeting&) {
  return nullptr;
}

}  // namespace leeway::programs
