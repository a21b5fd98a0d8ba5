#include "protocol/parity_ledger.h"

namespace leeway::protocol {

void ParityLedger::reset(std::uint32_t packets) {
  grid_ = wire::CodeGrid(packets);
  seen_.resize(grid_.parities_max());
  covered_.resize(packets);
  covered_count_ = 0;
  rows_.resize(packets);
}

std::optional<PacketIndex> ParityLedger::cover(wire::ParityPlace parity, const Bitmap& arrived) {
  for (std::uint32_t n = 0; n < grid_.size(parity.code); ++n) {
    const PacketIndex index = grid_.packet(parity.code, n);
    if (arrived.test(index.value) || covered_.test(index.value)) continue;
    covered_.set(index.value);
    ++covered_count_;
    rows_[index.value] = static_cast<std::uint8_t>(parity.row);
    return index;
  }
  return std::nullopt;
}

void ParityLedger::uncover(PacketIndex index) {
  if (!covered_.test(index.value)) return;
  covered_.clear(index.value);
  --covered_count_;
}

ParityLedger::Places ParityLedger::places(std::uint32_t code, const Bitmap& arrived) const {
  Places places;
  places.count = grid_.size(code);
  for (std::uint32_t n = 0; n < places.count; ++n) {
    const PacketIndex index = grid_.packet(code, n);
    const bool covered = covered_.test(index.value);
    places.rows[n] = covered ? rows_[index.value] : kPresent;
    places.covered += covered;
    places.full = places.full && (covered || arrived.test(index.value));
  }
  return places;
}

}  // namespace leeway::protocol
