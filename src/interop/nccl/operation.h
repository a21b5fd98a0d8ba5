// Arguments of one call of NCCL, checked and resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interop/nccl/abi.h"
#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::nccl {

enum class Kind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter,
  reduce,
  broadcast,
  all_gather,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
};
inline constexpr int kKindCount = 10;

// "all_reduce", as policies and traces write it.
std::string_view name_of(Kind kind);
// "AllReduce", as NCCL's texts write it.
std::string_view title_of(Kind kind);

constexpr bool reduces(Kind kind) {
  return kind <= Kind::reduce;
}
constexpr bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::recv;
}
constexpr bool has_root(Kind kind) {
  return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather ||
         kind == Kind::scatter;
}

// One call, with its reduction resolved: a program may destroy a reduction as soon as the call has
// returned.
struct Operation {
  Kind kind = Kind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // elements, as the call gives them: of one block if there are several
  DataType type = DataType::f32;
  Rank peer = 0;  // or the root
  CollectiveOptions options;
  leeway_nccl_stream stream = nullptr;
  // Kind of the buffers. `host`: pageable memory, which the processor reads and writes. `streams`:
  // device, managed or pinned memory, read and written in the order of streams. `any`: the
  // operation has no elements.
  enum class Memory : std::uint8_t { host, streams, any } memory = Memory::host;
  // For premul_sum: address of a factor that streams write, and that is read in the order of the
  // call's stream. Null if `options` has the factor.
  const void* factor = nullptr;
};

}  // namespace leeway::nccl
