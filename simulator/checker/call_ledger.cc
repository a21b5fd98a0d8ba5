#include "checker/call_ledger.h"

#include "checker/check.h"

namespace leeway::sim {

std::size_t CallLedger::packet_bytes(Rank owner) const {
  return plan.reduce_format().encoded_bytes(plan.reduce_to(owner).grid.elements_per_packet());
}

ByteSpan CallLedger::staged(Rank owner, Rank from, std::uint32_t index) const {
  const schedule::PacketGrid grid = plan.reduce_to(owner).grid;
  const std::size_t place = std::size_t{from} * grid.packets() + index;
  return ByteSpan(ranks[owner].staged)
      .subspan(place * packet_bytes(owner),
               plan.reduce_format().encoded_bytes(grid.packet_elements({index})));
}

std::string where(Instant now, Rank rank, const CallLedger& call) {
  return format_text("round %u, call %u (%s), rank %u, at %.6f ms", call.round, call.number,
                     to_string(call.kind), rank, static_cast<double>(now.ns) / 1e6);
}

}  // namespace leeway::sim
