// One call of NCCL, taken apart.
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

// What a call does, with its reduction resolved: a reduction may be destroyed as soon as the call
// has returned.
struct Operation {
  Kind kind = Kind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // as the call gives it: of one block where there are several
  DataType type = DataType::f32;
  Rank peer = 0;  // or the root
  CollectiveOptions options;
  leeway_nccl_stream stream = nullptr;
  // Whose memory it is: the host's, which is read and written when the call is made; or memory that
  // streams reach, a device's or pinned. Any: it has none.
  enum class Memory : std::uint8_t { host, streams, any } memory = Memory::host;
  // Of premul_sum: where the factor lies that streams write, read in their order. Null: options has
  // it.
  const void* factor = nullptr;
};

}  // namespace leeway::nccl
