// The collectives that `leeway perf` measures: buffer sizes and bandwidths as nccl-tests defines
// them, and the right result on every rank. This file makes no calls; call.h does.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::tools::perf {

enum class Operation {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  sendrecv,  // every rank sends to the next one and receives from the one before
};

std::string_view to_string(Operation operation);
Result<Operation> parse_operation(std::string_view name);

bool reduces(Operation operation);
bool has_root(Operation operation);
// Returns true for operations whose result may overwrite their input.
bool has_in_place(Operation operation);

// Lengths of one rank's buffers in elements. `count` is the number that nccl-tests prints: the
// elements of one block of one rank.
struct Layout {
  std::size_t count = 0;
  std::size_t input_count = 0;
  std::size_t output_count = 0;
};
// Returns the lengths that nccl-tests uses for a size argument of `bytes`. For operations on
// blocks, a block has bytes / ranks, rounded down to a multiple of 16 bytes. So all blocks together
// can be smaller than `bytes`.
Layout layout(Operation operation, std::size_t bytes, DataType type, int ranks);

// Returns busbw / algbw, as nccl-tests' PERFORMANCE.md defines it.
double bus_factor(Operation operation, int ranks);

// The source of one block (`count` elements) of a rank's output.
struct Origin {
  // The rank whose input is copied. If empty, the block is the reduction over all ranks' inputs.
  std::optional<int> source;
  std::size_t block = 0;  // index of the block in the input
};
// Returns nullopt if the operation does not write the output of `rank`, because it is not the root.
std::optional<Origin> origin(Operation operation, int rank, int ranks, int root, std::size_t block);

}  // namespace leeway::tools::perf
