#include "collective/block_layout.h"

#include <cstring>

#include "schedule/shard_map.h"

namespace leeway::collective {
namespace {

class Layout {
 public:
  Layout(const OperationSpec& spec, std::byte* barrier, OperationPlan& plan)
      : spec_(spec),
        plan_(plan),
        barrier_(barrier),
        in_(static_cast<std::byte*>(const_cast<void*>(spec.input.data))),
        out_(static_cast<std::byte*>(spec.output.data)),
        // If the operation has no contents, or has them elsewhere (a payload source), all blocks
        // get the same address, which is not used.
        element_(spec.contents && !spec.elsewhere() ? size_of(plan.dtype) : 0) {}

  void place() {
    switch (spec_.kind) {
      case OperationKind::all_reduce:
        return own_shard_to_all(plan_.reduction.shards);
      case OperationKind::replica_broadcast:
        return own_shard_to_all(schedule::ShardMap::even(spec_.output.count, plan_.size));
      case OperationKind::all_gather:
      case OperationKind::split:
        return all_gather();
      case OperationKind::broadcast:
        return broadcast();
      case OperationKind::gather:
        return gather();
      case OperationKind::scatter:
        return scatter();
      case OperationKind::all_to_all:
        return all_to_all();
      case OperationKind::barrier:
        return exchange({.data = barrier_, .elements = 1},
                        [this](Rank) { return Block{.data = barrier_ + 1, .elements = 1}; });
      case OperationKind::reduce_scatter:
      case OperationKind::reduce:
      case OperationKind::replica_reduce:
      case OperationKind::send:
      case OperationKind::recv:
      case OperationKind::exchange:
        return;  // no spread half
    }
  }

 private:
  Block nth(std::byte* base, Rank rank, std::size_t block) const {
    return {.data = base + rank * block * element_, .elements = block, .offset = rank * block};
  }

  Block uneven(std::byte* base, const BlockList& blocks, Rank rank) const {
    return {.data = base + blocks.offset(rank) * element_,
            .elements = blocks.count(rank),
            .offset = blocks.offset(rank)};
  }

  void copy(Block to, Block from) const {
    if (element_ > 0 && from.elements > 0 && to.data != from.data)
      std::memcpy(to.data, from.data, from.elements * element_);
  }

  template <typename Visit>
  void for_each_other(Visit&& visit) const {
    for (Rank peer = 0; peer < plan_.size; ++peer) {
      if (peer != plan_.self) visit(peer);
    }
  }

  // Plans that this rank sends `own` to all other ranks, and receives rank r's block at
  // place_of(r).
  template <typename PlaceOf>
  void exchange(Block own, PlaceOf&& place_of) {
    for_each_other([&](Rank peer) {
      plan_.spread.send[peer] = own;
      plan_.spread.receive[peer] = place_of(peer);
    });
  }

  void own_shard_to_all(const schedule::ShardMap& shards) {
    const auto shard = [&](Rank rank) {
      return Block{out_ + shards[rank].offset * element_, shards[rank].count, shards[rank].offset,
                   shards[rank].offset};
    };
    exchange(shard(plan_.self), shard);
  }

  void all_gather() {
    const std::size_t block = spec_.input.count;
    const auto place_of = [&](Rank rank) {
      return spec_.uneven() ? uneven(out_, spec_.output_blocks, rank) : nth(out_, rank, block);
    };
    const Block own = place_of(plan_.self);
    copy(own, {.data = in_, .elements = block});
    exchange(own, place_of);
  }

  void broadcast() {
    const Block all{.data = out_, .elements = spec_.output.count};
    for_each_other([&](Rank peer) {
      if (plan_.self == spec_.peer) plan_.spread.send[peer] = all;
      if (peer == spec_.peer) plan_.spread.receive[peer] = all;
    });
  }

  void gather() {
    const std::size_t block = spec_.input.count;
    if (plan_.self != spec_.peer) {
      plan_.spread.send[spec_.peer] = {
          .data = in_, .elements = block, .offset = plan_.self * block};
      return;
    }
    copy(nth(out_, plan_.self, block), {.data = in_, .elements = block});
    for_each_other([&](Rank peer) { plan_.spread.receive[peer] = nth(out_, peer, block); });
  }

  void scatter() {
    const std::size_t block = spec_.output.count;
    if (plan_.self != spec_.peer) {
      plan_.spread.receive[spec_.peer] = {.data = out_, .elements = block};
      return;
    }
    copy({.data = out_, .elements = block}, nth(in_, plan_.self, block));
    for_each_other([&](Rank peer) { plan_.spread.send[peer] = nth(in_, peer, block); });
  }

  void all_to_all() {
    const std::size_t block = spec_.input.count / plan_.size;
    const auto source = [&](Rank to) {
      return spec_.uneven() ? uneven(in_, spec_.input_blocks, to) : nth(in_, to, block);
    };
    const auto place_of = [&](Rank from) {
      return spec_.uneven() ? uneven(out_, spec_.output_blocks, from) : nth(out_, from, block);
    };
    copy(place_of(plan_.self), source(plan_.self));
    for_each_other([&](Rank peer) {
      plan_.spread.send[peer] = source(peer);
      plan_.spread.receive[peer] = place_of(peer);
    });
  }

  const OperationSpec& spec_;
  OperationPlan& plan_;
  std::byte* barrier_;
  std::byte* in_;
  std::byte* out_;
  std::size_t element_;
};

}  // namespace

void place_blocks(const OperationSpec& spec, std::byte* barrier, OperationPlan& plan) {
  Layout(spec, barrier, plan).place();
}

}  // namespace leeway::collective
