#include "interop/nccl/hierarchy/hops.h"

#include "leeway/types.h"

namespace leeway::nccl {
namespace {

// Parts of a tensor begin at multiples of this, so that copies of NVIDIA's library stay aligned.
constexpr std::size_t kPartAlignment = 16;

// One reduction as two.
struct Reduction {
  ReduceOp inside;
  ReduceOp between;
  double weight = 1;  // of a node
};

Reduction reduction_of(const Operation& operation, const Nodes& nodes) {
  const ReduceOp op = operation.options.op;
  if (op == ReduceOp::premul_sum) return {op, ReduceOp::sum};
  // Leeway has weights of float32 only. Other means are means of means: nodes have equal weight.
  if (op == ReduceOp::avg && operation.type == DataType::f32)
    return {ReduceOp::sum, op, static_cast<double>(nodes.each)};
  return {op, op};
}

// The hops of one operation, as they are being made.
class Maker {
 public:
  Maker(const Operation& operation, const Nodes& nodes)
      : whole_(operation),
        nodes_(nodes),
        reduction_(reduction_of(operation, nodes)),
        element_(size_of(operation.type)),
        local_(static_cast<std::size_t>(nodes.local)),
        each_(static_cast<std::size_t>(nodes.each)) {}

  Hops all_reduce_of_whole();
  Hops all_reduce_of_parts();
  Hops reduce_scatter(void* scratch);
  Hops all_gather();

 private:
  const void* sent(std::size_t element) const {
    return static_cast<const std::byte*>(whole_.send) + element * element_;
  }
  void* received(std::size_t element) const {
    return static_cast<std::byte*>(whole_.receive) + element * element_;
  }
  InnerCall reducing(Kind kind, const void* send, void* receive, std::size_t count,
                     int root = 0) const {
    return {kind,         send,
            receive,      count,
            whole_.type,  reduction_.inside,
            root,         whole_.options.factor,
            whole_.factor};
  }
  InnerCall moving(Kind kind, const void* send, void* receive, std::size_t count,
                   int root = 0) const {
    return {kind, send, receive, count, whole_.type, ReduceOp::sum, root};
  }
  Operation between(const void* send, void* receive, std::size_t count) const {
    Operation out = whole_;
    out.among = Operation::Among::peers;
    out.send = send;
    out.receive = receive;
    out.count = count;
    if (!reduces(out.kind)) return out;
    out.factor = nullptr;
    out.options.factor = 1;
    out.options.op = reduction_.between;
    out.options.weight = reduction_.weight;
    return out;
  }

  const Operation& whole_;
  const Nodes& nodes_;
  const Reduction reduction_;
  const std::size_t element_;
  const std::size_t local_;
  const std::size_t each_;
};

Hops Maker::all_reduce_of_whole() {
  constexpr int kRoot = 0;
  Hops hops;
  void* const result = whole_.receive;
  hops.before.push_back(reducing(Kind::reduce, whole_.send, result, whole_.count, kRoot));
  if (nodes_.local == kRoot) hops.between = between(result, result, whole_.count);
  hops.after.push_back(moving(Kind::broadcast, result, result, whole_.count, kRoot));
  return hops;
}

// Each rank of a node has a part of the result, and the last one what does not divide besides: it
// lies behind that rank's part, so that nothing is padded or copied.
Hops Maker::all_reduce_of_parts() {
  const std::size_t step = kPartAlignment / element_;
  const std::size_t part = whole_.count / each_ / step * step;
  const std::size_t first = local_ * part;
  const std::size_t tail_at = each_ * part;
  const std::size_t tail = whole_.count - tail_at;
  const int last = nodes_.each - 1;
  Hops hops;
  hops.before.push_back(reducing(Kind::reduce_scatter, whole_.send, received(first), part));
  hops.after.push_back(moving(Kind::all_gather, received(first), whole_.receive, part));
  if (tail > 0) {
    hops.before.push_back(reducing(Kind::reduce, sent(tail_at), received(tail_at), tail, last));
    hops.after.push_back(moving(Kind::broadcast, received(tail_at), received(tail_at), tail, last));
  }
  hops.between =
      between(received(first), received(first), nodes_.local == last ? part + tail : part);
  return hops;
}

// Of each node's blocks the node makes its own sums, which its ranks then reduce with their peers.
Hops Maker::reduce_scatter(void* scratch) {
  const std::size_t block = whole_.count;
  Hops hops;
  for (int node = 0; node < nodes_.count; ++node) {
    const auto index = static_cast<std::size_t>(node);
    void* const sums = static_cast<std::byte*>(scratch) + index * block * element_;
    hops.before.push_back(reducing(Kind::reduce_scatter, sent(index * each_ * block), sums, block));
  }
  hops.between = between(scratch, whole_.receive, block);
  return hops;
}

// Peers' blocks come to their places in the result first, and from there to the rest of the node.
Hops Maker::all_gather() {
  const std::size_t block = whole_.count;
  Hops hops;
  hops.between = between(whole_.send, received(local_ * block), block);
  hops.between->pitch = each_ * block;
  for (int node = 0; node < nodes_.count; ++node) {
    const std::size_t first = static_cast<std::size_t>(node) * each_ * block;
    hops.after.push_back(
        moving(Kind::all_gather, received(first + local_ * block), received(first), block));
  }
  return hops;
}

bool is_integer(DataType type) {
  switch (type) {
    case DataType::f32:
    case DataType::f64:
    case DataType::f16:
    case DataType::bf16:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
      return false;
    default:
      return true;
  }
}

}  // namespace

InnerCall inner_call(const Operation& operation, int peer) {
  return {operation.kind,
          operation.send,
          operation.receive,
          operation.count,
          operation.type,
          operation.options.op,
          peer,
          operation.options.factor,
          operation.factor};
}

bool has_hops(const Operation& operation, const Nodes& nodes) {
  if (operation.options.op == ReduceOp::avg && reduces(operation.kind) &&
      is_integer(operation.type))
    return false;
  if (operation.kind == Kind::all_reduce) return true;
  const bool by_blocks =
      operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_gather;
  return by_blocks && nodes.in_order();
}

std::size_t scratch_bytes(const Operation& operation, const Nodes& nodes) {
  if (operation.kind != Kind::reduce_scatter) return 0;
  return static_cast<std::size_t>(nodes.count) * operation.count * size_of(operation.type);
}

Hops hops_of(const Operation& operation, const Nodes& nodes, void* scratch) {
  Maker maker(operation, nodes);
  if (operation.kind == Kind::reduce_scatter) return maker.reduce_scatter(scratch);
  if (operation.kind == Kind::all_gather) return maker.all_gather();
  const bool scattered = operation.count * size_of(operation.type) >= kScatteredBytesMin;
  return scattered ? maker.all_reduce_of_parts() : maker.all_reduce_of_whole();
}

}  // namespace leeway::nccl
