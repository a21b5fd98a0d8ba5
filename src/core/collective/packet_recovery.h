// Computes lost packets from parity and from the packets that came. Parity was received into the
// places of lost packets (protocol::ParityLedger).
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
  // Call before an operation whose packets have at most `bytes` bytes. Allocates if that is more
  // than before.
  void prepare(std::size_t bytes) {
    if (recovery_ == nullptr) recovery_ = std::make_unique<erasure::Recovery>();
    lifted_.reserve(bytes);
  }

  // Returns a copy of the parity at `place`, valid until the next call.
  ByteSpan lift(ByteSpan place) {
    std::memcpy(lifted_.data(), place.data(), place.size());
    return lift_nothing(place.size());
  }
  // As lift(), for an operation without contents: the bytes have no meaning, only the length has.
  ByteSpan lift_nothing(std::size_t bytes) const { return {lifted_.data(), bytes}; }

  // Recovers packets as RoundClient::recover() asks. `bytes` is the length of a full packet.
  // place(index) returns where a packet lies or is to be written.
  template <typename Place>
  void run(const wire::CodeGrid& grid, const protocol::RoundClient::CodedPackets& code,
           std::size_t bytes, Place place) {
    std::array<MutableByteSpan, limits::kCodePackets> places;
    for (std::uint32_t n = 0; n < code.rows.size(); ++n)
      places[n] = place(grid.packet(code.code, n));
    // Parity is as long as a full packet. The flow's last packet may be shorter, and parity does
    // not fit into its place then.
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
