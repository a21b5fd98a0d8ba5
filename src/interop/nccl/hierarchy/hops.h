// A collective in hops: NVIDIA's library inside the nodes, Leeway between them.
//
// Pure arithmetic: which calls, on which memory. Every rank takes the hops of its own, and all
// ranks take them alike.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "interop/nccl/hierarchy/nodes.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

// A call of NVIDIA's library. Ranks are those of the communicator it is made of.
struct InnerCall {
  Kind kind = Kind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // as the library takes it: of one block where there are several
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  int peer = 0;  // or the root
  // Of premul_sum: the factor, or where it lies that streams write.
  Scalar factor = 1;
  const void* factor_memory = nullptr;
};

// The operation as one call. `peer`: the operation's, as the library's communicator counts it.
InnerCall inner_call(const Operation& operation, int peer);

// In stream order. The calls before, and those after, begin together.
struct Hops {
  std::vector<InnerCall> before;
  // Among the ranks of equal index in their nodes. None: this rank has no part in it.
  std::optional<Operation> between;
  std::vector<InnerCall> after;
};

// Whether hops do what one operation of all ranks would do. Integer averages they do not, as each
// hop would truncate; nor operations by blocks of nodes whose blocks do not lie side by side.
bool has_hops(const Operation& operation, const Nodes& nodes);

// Device memory that hops_of() needs beside the operation's own.
std::size_t scratch_bytes(const Operation& operation, const Nodes& nodes);

// Less than this goes through one rank of a node whole, by reductions to it and broadcasts from it:
// two hops of a whole tensor take less time than two of a part, whose latency grows with the ranks.
inline constexpr std::size_t kScatteredBytesMin = std::size_t{256} << 10;

// `scratch`: of scratch_bytes().
Hops hops_of(const Operation& operation, const Nodes& nodes, void* scratch);

}  // namespace leeway::nccl
