// Reductions of NCCL by their numbers: five that are built in, and those that a program made for
// one communicator (ncclRedOpCreatePreMulSum).
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "interop/nccl/abi.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::nccl {

// Returns the type of an ncclDataType_t, or nullopt if it is none.
std::optional<DataType> type_of(leeway_nccl_enum type);

// Reads the number of this type at `memory`.
Scalar scalar_at(const void* memory, DataType type);

class Reductions {
 public:
  // The ncclRedOp_t of the first reduction that a program makes.
  static constexpr leeway_nccl_enum kFirstMade = 5;

  // Makes a premul_sum and returns its ncclRedOp_t. Reads its factor at `memory` now, or, with
  // `later`, in each call that uses the reduction.
  leeway_nccl_enum make(const void* memory, DataType type, bool later);
  // Returns false if `op` was not made here, or was destroyed.
  bool destroy(leeway_nccl_enum op);
  // Sets the options to the reduction. If each call reads the factor, sets `later` to its address.
  // Returns kInvalidArgument if there is no such reduction, or if it is for another type.
  Status resolve(leeway_nccl_enum op, DataType type, CollectiveOptions& options,
                 const void*& later) const;

 private:
  struct Made {
    bool there = false;
    DataType type = DataType::f32;
    const void* memory = nullptr;  // address of a factor that calls read; null if `factor` has it
    Scalar factor = 1;
  };
  mutable std::mutex mutex_;
  std::vector<Made> made_;
};

}  // namespace leeway::nccl
