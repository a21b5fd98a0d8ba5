#include "checker/call_ledger.h"

#include "checker/check.h"
#include "codec/codec.h"

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

ByteSpan CallLedger::brought(Rank owner, Rank from, std::uint32_t index, std::uint64_t seed,
                             std::vector<std::byte>& memory) const {
  const FlowPlan flow = plan.reduce_to(owner);
  const std::size_t offset = flow.grid.packet_offset({index});
  const auto values = std::span(ranks[from].source)
                          .subspan(flow.source + offset, flow.grid.packet_elements({index}));
  const codec::Format& format = plan.reduce_format();
  if (format.identity()) return std::as_bytes(values);
  memory.resize(format.encoded_bytes(values.size()));
  codec::encode(format, values, {seed, number, from, flow.position + offset}, memory);
  return memory;
}

std::string where(Instant now, Rank rank, const CallLedger& call) {
  return format_text("round %u, call %u (%s), rank %u, at %.6f ms", call.round, call.number,
                     to_string(call.kind), rank, static_cast<double>(now.ns) / 1e6);
}

}  // namespace leeway::sim
