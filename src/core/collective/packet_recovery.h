// Computes lost packets of a code from the packets that came and from parity, which lies in places
// of lost packets (protocol::ParityLedger).
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>

#include "base/growing_buffer.h"
#include "erasure/cauchy.h"
#include "protocol/round_client.h"

namespace leeway::collective {

class PacketRecovery {
 public:
  // Call before an operation whose packets have at most `bytes` bytes. Allocates when it grows.
  void prepare(std::size_t bytes) {
    if (recovery_ == nullptr) recovery_ = std::make_unique<erasure::Recovery>();
    lifted_.reserve(bytes);
  }

  // Returns a copy of the parity at `place`, valid until the next call.
  ByteSpan lift(ByteSpan place) {
    std::memcpy(lifted_.data(), place.data(), place.size());
    return lift_nothing(place.size());
  }
  // The same for an operation without contents: only the length counts.
  ByteSpan lift_nothing(std::size_t bytes) const { return {lifted_.data(), bytes}; }

  // The same as RoundClient::recover(), for a flow whose full packets have `bytes` bytes.
  // `place(index)` returns where a packet lies or is to lie.
  template <typename Place>
  void run(const wire::CodeGrid& grid, const protocol::RoundClient::CodedPackets& code,
           std::size_t bytes, Place place) {
    std::array<MutableByteSpan, limits::kCodePackets> places;
    for (std::uint32_t n = 0; n < code.rows.size(); ++n)
      places[n] = place(grid.packet(code.code, n));
    // Only the place of the flow's last packet may be shorter than parity.
    const bool fits = !code.last.empty() && places[code.last_at].size() == bytes;
    if (fits) std::memcpy(places[code.last_at].data(), code.last.data(), bytes);
    recovery_->run(std::span(places).first(code.rows.size()), code.rows, bytes,
                   fits ? ByteSpan() : code.last);
  }

 private:
  std::unique_ptr<erasure::Recovery> recovery_;
  GrowingBuffer lifted_;
};

}  // namespace leeway::collective
