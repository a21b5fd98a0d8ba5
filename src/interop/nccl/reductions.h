// Reductions of NCCL by their numbers: five that are built in, and those that a program made of one
// communicator (ncclRedOpCreatePreMulSum).
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

// ncclDataType_t; nothing where it is none.
std::optional<DataType> type_of(leeway_nccl_enum type);

// The number at `memory`, of this type.
Scalar scalar_at(const void* memory, DataType type);

class Reductions {
 public:
  // The number of ncclRedOp_t that is given to the first one made.
  static constexpr leeway_nccl_enum kFirstMade = 5;

  // `memory` is read now, or, with `later`, by each call that uses the reduction.
  leeway_nccl_enum make(const void* memory, DataType type, bool later);
  // False: not one that was made here and is still there.
  bool destroy(leeway_nccl_enum op);
  // Puts the reduction into the options. `later`: is set to the memory of a factor that each call
  // reads. kInvalidArgument: there is none of this number, or it is for another type.
  Status resolve(leeway_nccl_enum op, DataType type, CollectiveOptions& options,
                 const void*& later) const;

 private:
  struct Made {
    bool there = false;
    DataType type = DataType::f32;
    const void* memory = nullptr;  // read later; null: `factor` holds it
    Scalar factor = 1;
  };
  mutable std::mutex mutex_;
  std::vector<Made> made_;
};

}  // namespace leeway::nccl
