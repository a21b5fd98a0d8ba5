// The collectives that `leeway perf` measures: how nccl-tests sizes them, how it defines their
// bandwidth, and what every rank must hold afterwards. Pure data; call.h runs them.
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

// Elements of one rank's buffers. `count` is what nccl-tests prints: elements per rank and block.
struct Layout {
  std::size_t count = 0;
  std::size_t input_count = 0;
  std::size_t output_count = 0;
};
// The buffers of nccl-tests for a size argument of `bytes`. Operations on blocks divide it by the
// ranks, rounded down to 16 bytes, so their real size can be smaller.
Layout layout(Operation operation, std::size_t bytes, DataType type, int ranks);

// busbw = algbw x this, as in nccl-tests' PERFORMANCE.md.
double bus_factor(Operation operation, int ranks);

// Where block `block` (of `count` elements) of a rank's output comes from.
struct Origin {
  // the rank whose input is copied; if empty, the block is the reduction over all ranks
  std::optional<int> source;
  std::size_t block = 0;  // index of the block in the input
};
// Returns nullopt if the operation leaves the output of `rank` untouched (not the root).
std::optional<Origin> origin(Operation operation, int rank, int ranks, int root, std::size_t block);

}  // namespace leeway::tools::perf
