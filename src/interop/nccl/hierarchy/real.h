// NVIDIA's own NCCL, beside the drop-in that has its names.
#pragma once

#include <string>
#include <vector>

#include "interop/nccl/functions.h"
#include "leeway/status.h"

namespace leeway::nccl {

class RealNccl {
 public:
  // `asked`: a file; "none"; or, where it is empty, the first of real_nccl_places() that can be
  // opened. kUnavailable: why there is none. What is opened stays as long as the process.
  static Result<const RealNccl*> open(const std::string& asked);

  // The library's functions. Null: those that it does not have. `open()` has seen to those that the
  // hierarchy cannot do without.
  const leeway_nccl_functions call;
  const std::string path;
  const int version;  // as ncclGetVersion says it

 private:
  RealNccl(const leeway_nccl_functions& functions, std::string file, int code)
      : call(functions), path(std::move(file)), version(code) {}
  static Result<const RealNccl*> load(const std::string& path);
};

// Where a libnccl.so.2 may lie that is not Leeway's: folders of LD_LIBRARY_PATH, Python packages of
// which a library is loaded (PyTorch's wheels bring NCCL along), CUDA's and the system's folders.
std::vector<std::string> real_nccl_places();

}  // namespace leeway::nccl
