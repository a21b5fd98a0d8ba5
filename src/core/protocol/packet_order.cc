#include "protocol/packet_order.h"

#include "base/philox.h"

namespace leeway::protocol {
namespace {

// Stream tags of the keyed permutations. They keep permutations from sharing random numbers with
// codecs or injected faults.
constexpr std::uint32_t kRotationStream = 0x50000000;
constexpr std::uint32_t kInnerStream = 0x60000000;

}  // namespace

std::uint64_t PacketOrder::rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const {
  if (!config_.permute) return schedule::PacketCursor::kInOrder;
  return keyed_hash(config_.seed, number, kRotationStream | static_cast<std::uint32_t>(kind), owner,
                    0);
}

std::uint64_t PacketOrder::inner_key(std::uint32_t number, FlowKind kind, Rank from,
                                     Rank to) const {
  if (!config_.permute) return schedule::PacketCursor::kInOrder;
  return keyed_hash(config_.seed, number, kInnerStream | static_cast<std::uint32_t>(kind), from,
                    to);
}

schedule::PacketCursor PacketOrder::cursor(const Round& round, FlowKind kind, Rank to,
                                           const schedule::PacketGrid& grid) const {
  const bool to_owner = kind == FlowKind::reduce;
  const schedule::PacketCursor::Keys keys{
      rotation_key(round.number, kind, to_owner ? to : config_.self),
      inner_key(round.number, kind, config_.self, to)};
  const PhasePlan& phase = round.plan->phase(kind);
  return schedule::PacketCursor(grid, keys, phase.queue,
                                phase.ready.empty() ? nullptr : &phase.ready[to]);
}

}  // namespace leeway::protocol
