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

// Each rank of a node has a part of a tensor, and the last one what does not divide besides: it
// lies behind that rank's part, so that nothing is padded or copied.
struct Parts {
  Parts(const Operation& operation, const Nodes& nodes) {
    const auto each = static_cast<std::size_t>(nodes.each);
    const std::size_t step = kPartAlignment / size_of(operation.type);
    length = operation.count / each / step * step;
    first = static_cast<std::size_t>(nodes.local) * length;
    tail_at = each * length;
    tail = operation.count - tail_at;
    last = nodes.each - 1;
    own = nodes.local == last ? length + tail : length;
  }
  std::size_t length = 0;
  std::size_t first = 0;    // element of this rank's
  std::size_t own = 0;      // elements of this rank's, with the rest
  std::size_t tail_at = 0;  // the rest
  std::size_t tail = 0;
  int last = 0;  // whose it is
};

bool is_scattered(const Operation& operation) {
  return operation.count * size_of(operation.type) >= kScatteredBytesMin;
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
        each_(static_cast<std::size_t>(nodes.each)),
        root_(has_root(operation.kind) ? nodes.place_of(static_cast<int>(operation.peer))
                                       : Nodes::Place{}) {}

  Hops all_reduce_of_whole();
  Hops all_reduce_of_parts();
  Hops reduce_scatter(void* scratch);
  Hops all_gather();
  Hops broadcast_of_whole();
  Hops broadcast_of_parts();
  Hops reduce_of_whole(void* scratch);
  Hops reduce_of_parts(void* scratch);
  Hops gather(void* scratch);
  Hops scatter(void* scratch);

 private:
  // Of an operation with a root.
  bool is_root() const { return at_root_node() && nodes_.local == root_.local; }
  bool at_root_node() const { return nodes_.node == root_.node; }
  std::vector<InnerCall> reduce_to_parts(const Parts& parts, void* own) const;
  std::vector<InnerCall> gather_parts(const Parts& parts) const;
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
    out.peer = static_cast<Rank>(root_.node);  // of those that have a root
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
  const Nodes::Place root_;
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

Hops Maker::all_reduce_of_parts() {
  const Parts parts(whole_, nodes_);
  Hops hops;
  hops.before = reduce_to_parts(parts, received(parts.first));
  hops.after = gather_parts(parts);
  hops.between = between(received(parts.first), received(parts.first), parts.own);
  return hops;
}

// A node's part of a sum lies in `own`, this rank's.
std::vector<InnerCall> Maker::reduce_to_parts(const Parts& parts, void* own) const {
  std::vector<InnerCall> calls;
  calls.push_back(reducing(Kind::reduce_scatter, whole_.send, own, parts.length));
  if (parts.tail == 0) return calls;
  void* const tail = static_cast<std::byte*>(own) + parts.length * element_;
  calls.push_back(reducing(Kind::reduce, sent(parts.tail_at),
                           nodes_.local == parts.last ? tail : nullptr, parts.tail, parts.last));
  return calls;
}

// The parts, each in its place on one rank, come to all ranks of the node.
std::vector<InnerCall> Maker::gather_parts(const Parts& parts) const {
  void* const own = received(parts.first);
  void* const tail = received(parts.tail_at);
  std::vector<InnerCall> calls;
  calls.push_back(moving(Kind::all_gather, own, whole_.receive, parts.length));
  if (parts.tail > 0) calls.push_back(moving(Kind::broadcast, tail, tail, parts.tail, parts.last));
  return calls;
}

// From the root to its peers, and in each node from there.
Hops Maker::broadcast_of_whole() {
  Hops hops;
  void* const result = whole_.receive;
  if (nodes_.local == root_.local) hops.between = between(whole_.send, result, whole_.count);
  hops.after.push_back(moving(Kind::broadcast, result, result, whole_.count, root_.local));
  return hops;
}

// The root's node has it first. Each of its ranks then sends a part to its peers.
Hops Maker::broadcast_of_parts() {
  const Parts parts(whole_, nodes_);
  void* const own = received(parts.first);
  Hops hops;
  if (at_root_node()) {
    const void* const send = is_root() ? whole_.send : whole_.receive;
    hops.before.push_back(moving(Kind::broadcast, send, whole_.receive, whole_.count, root_.local));
  } else {
    hops.after = gather_parts(parts);
  }
  hops.between = between(at_root_node() ? own : nullptr, own, parts.own);
  return hops;
}

// Each node to the root's peer in it, and these to the root.
Hops Maker::reduce_of_whole(void* scratch) {
  Hops hops;
  const bool takes = nodes_.local == root_.local;
  void* const sum = is_root() ? whole_.receive : takes ? scratch : nullptr;
  hops.before.push_back(reducing(Kind::reduce, whole_.send, sum, whole_.count, root_.local));
  if (takes) hops.between = between(sum, is_root() ? sum : nullptr, whole_.count);
  return hops;
}

// Each rank of the root's node has a part of the result in the end, and sends it to the root.
Hops Maker::reduce_of_parts(void* scratch) {
  const Parts parts(whole_, nodes_);
  void* const own = is_root() ? received(parts.first) : scratch;
  Hops hops;
  hops.before = reduce_to_parts(parts, own);
  hops.between = between(own, at_root_node() ? own : nullptr, parts.own);
  if (!at_root_node()) return hops;
  if (!is_root()) {
    hops.after.push_back(moving(Kind::send, own, nullptr, parts.own, root_.local));
    return hops;
  }
  for (int local = 0; local < nodes_.each; ++local) {
    if (local == root_.local) continue;
    const std::size_t first = static_cast<std::size_t>(local) * parts.length;
    const std::size_t count = local == parts.last ? parts.length + parts.tail : parts.length;
    hops.after.push_back(moving(Kind::recv, nullptr, received(first), count, local));
  }
  return hops;
}

// Blocks go to the root's node by all of its ranks, and from these to the root.
Hops Maker::gather(void* scratch) {
  const std::size_t block = whole_.count;
  Hops hops;
  void* const blocks = is_root() ? received(local_ * block) : scratch;
  hops.between = between(whole_.send, at_root_node() ? blocks : nullptr, block);
  if (is_root()) hops.between->pitch = each_ * block;
  for (int node = 0; node < nodes_.count && at_root_node(); ++node) {
    const auto index = static_cast<std::size_t>(node);
    if (!is_root()) {
      const auto* const from = static_cast<const std::byte*>(scratch) + index * block * element_;
      hops.after.push_back(moving(Kind::send, from, nullptr, block, root_.local));
    }
    for (int local = 0; local < nodes_.each && is_root(); ++local) {
      const std::size_t at = (index * each_ + static_cast<std::size_t>(local)) * block;
      if (local != root_.local)
        hops.after.push_back(moving(Kind::recv, nullptr, received(at), block, local));
    }
  }
  return hops;
}

// The same, the other way round. The root sends its own peers' blocks to itself, so that all ranks
// of its node have blocks that lie side by side.
Hops Maker::scatter(void* scratch) {
  const std::size_t block = whole_.count;
  Hops hops;
  for (int node = 0; node < nodes_.count && at_root_node(); ++node) {
    const auto index = static_cast<std::size_t>(node);
    for (int local = 0; local < nodes_.each && is_root(); ++local) {
      const std::size_t at = (index * each_ + static_cast<std::size_t>(local)) * block;
      hops.before.push_back(moving(Kind::send, sent(at), nullptr, block, local));
    }
    void* const to = static_cast<std::byte*>(scratch) + index * block * element_;
    hops.before.push_back(moving(Kind::recv, nullptr, to, block, root_.local));
  }
  hops.between = between(at_root_node() ? scratch : nullptr, whole_.receive, block);
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
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::broadcast:
    case Kind::reduce:
      return true;
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::gather:
    case Kind::scatter:
      return nodes.in_order();
    default:
      return false;
  }
}

std::size_t scratch_bytes(const Operation& operation, const Nodes& nodes) {
  const std::size_t element = size_of(operation.type);
  const std::size_t blocks = static_cast<std::size_t>(nodes.count) * operation.count * element;
  if (operation.kind == Kind::reduce_scatter) return blocks;
  if (!has_root(operation.kind)) return 0;
  const Nodes::Place root = nodes.place_of(static_cast<int>(operation.peer));
  const bool at_root_node = nodes.node == root.node;
  const bool is_root = at_root_node && nodes.local == root.local;
  switch (operation.kind) {
    case Kind::reduce:
      if (is_root) return 0;
      if (is_scattered(operation)) return Parts(operation, nodes).own * element;
      return nodes.local == root.local ? operation.count * element : 0;
    case Kind::gather:
      return at_root_node && !is_root ? blocks : 0;
    case Kind::scatter:
      return at_root_node ? blocks : 0;
    default:
      return 0;
  }
}

Hops hops_of(const Operation& operation, const Nodes& nodes, void* scratch) {
  Maker maker(operation, nodes);
  const bool scattered = is_scattered(operation);
  switch (operation.kind) {
    case Kind::reduce_scatter:
      return maker.reduce_scatter(scratch);
    case Kind::all_gather:
      return maker.all_gather();
    case Kind::broadcast:
      return scattered ? maker.broadcast_of_parts() : maker.broadcast_of_whole();
    case Kind::reduce:
      return scattered ? maker.reduce_of_parts(scratch) : maker.reduce_of_whole(scratch);
    case Kind::gather:
      return maker.gather(scratch);
    case Kind::scatter:
      return maker.scatter(scratch);
    default:
      return scattered ? maker.all_reduce_of_parts() : maker.all_reduce_of_whole();
  }
}

}  // namespace leeway::nccl
