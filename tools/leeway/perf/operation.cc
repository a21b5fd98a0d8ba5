#include "perf/operation.h"

#include <algorithm>
#include <array>

namespace leeway::tools::perf {
namespace {

struct Traits {
  Operation operation;
  std::string_view name;
  bool reduces;
  bool has_root;
  bool has_in_place;
  // True if the input, or the output, holds a block for each rank. If both members are false, both
  // buffers have the full size.
  bool input_blocks;
  bool output_blocks;
};

constexpr std::array<Traits, 9> kTraits{{
    {Operation::all_reduce, "all_reduce", true, false, true, false, false},
    {Operation::reduce_scatter, "reduce_scatter", true, false, false, true, false},
    {Operation::all_gather, "all_gather", false, false, false, false, true},
    {Operation::broadcast, "broadcast", false, true, true, false, false},
    {Operation::reduce, "reduce", true, true, false, false, false},
    {Operation::gather, "gather", false, true, false, false, true},
    {Operation::scatter, "scatter", false, true, false, true, false},
    {Operation::all_to_all, "all_to_all", false, false, false, true, true},
    {Operation::sendrecv, "sendrecv", false, false, false, false, false},
}};

const Traits& traits(Operation operation) {
  return kTraits[static_cast<std::size_t>(operation)];
}

}  // namespace

std::string_view to_string(Operation operation) {
  return traits(operation).name;
}

Result<Operation> parse_operation(std::string_view name) {
  for (const Traits& candidate : kTraits) {
    if (candidate.name == name) return candidate.operation;
  }
  return Status::error(
      StatusCode::kInvalidArgument,
      "unknown operation '%.*s'; there are all_reduce, reduce_scatter, all_gather, "
      "broadcast, reduce, gather, scatter, all_to_all and sendrecv",
      static_cast<int>(name.size()), name.data());
}

bool reduces(Operation operation) {
  return traits(operation).reduces;
}
bool has_root(Operation operation) {
  return traits(operation).has_root;
}
bool has_in_place(Operation operation) {
  return traits(operation).has_in_place;
}

Layout layout(Operation operation, std::size_t bytes, DataType type, int ranks) {
  const Traits& t = traits(operation);
  const std::size_t elements = std::max<std::size_t>(1, bytes / size_of(type));
  if (!t.input_blocks && !t.output_blocks) return {elements, elements, elements};
  const std::size_t blocks = static_cast<std::size_t>(ranks);
  const std::size_t per_sixteen_bytes = 16 / size_of(type);
  const std::size_t count =
      std::max<std::size_t>(1, elements / blocks / per_sixteen_bytes * per_sixteen_bytes);
  return {count, t.input_blocks ? count * blocks : count, t.output_blocks ? count * blocks : count};
}

double bus_factor(Operation operation, int ranks) {
  const double n = ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (n - 1) / n;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      return (n - 1) / n;
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::sendrecv:
      return 1;
  }
  return 1;
}

std::optional<Origin> origin(Operation operation, int rank, int ranks, int root,
                             std::size_t block) {
  const int source_of_block = static_cast<int>(block);
  const std::size_t own_block = static_cast<std::size_t>(rank);
  switch (operation) {
    case Operation::all_reduce:
      return Origin{std::nullopt, 0};
    case Operation::reduce_scatter:
      return Origin{std::nullopt, own_block};
    case Operation::reduce:
      if (rank != root) return std::nullopt;
      return Origin{std::nullopt, 0};
    case Operation::all_gather:
      return Origin{source_of_block, 0};
    case Operation::gather:
      if (rank != root) return std::nullopt;
      return Origin{source_of_block, 0};
    case Operation::broadcast:
      return Origin{root, 0};
    case Operation::scatter:
      return Origin{root, own_block};
    case Operation::all_to_all:
      return Origin{source_of_block, own_block};
    case Operation::sendrecv:
      return Origin{(rank + ranks - 1) % ranks, 0};
  }
  return std::nullopt;
}

}  // namespace leeway::tools::perf
