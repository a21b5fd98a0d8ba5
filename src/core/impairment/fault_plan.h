// Decides the fate of a datagram under injected faults. The fate depends only on the options and
// the packet's address.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "impairment/gilbert_loss.h"
#include "impairment/hash_stream.h"
#include "impairment/loss_list.h"
#include "impairment/packet_address.h"
#include "leeway/options.h"
#include "leeway/status.h"

namespace leeway::impairment {

// Largest number of later datagrams that overtake a reordered one.
inline constexpr int kReorderDistanceMax = 8;

struct Fate {
  bool lost = false;  // the other members mean nothing if it is lost
  bool duplicate = false;
  bool corrupt = false;
  std::uint64_t corrupt_bit = 0;  // which bit to flip, modulo the datagram's length in bits
  // Number of later datagrams that overtake it, 0 .. kReorderDistanceMax.
  int reorder = 0;
  Duration delay{0};
};

// Returns an error that names an option out of range, if there is one.
Status check_faults(const FaultOptions& options);

class FaultPlan {
 public:
  static Result<FaultPlan> create(const FaultOptions& options);

  // Not const, because GilbertLoss remembers states of its chains. Remembered states make answers
  // cheaper, but never change them.
  Fate fate(const PacketAddress& packet);

 private:
  FaultPlan(const FaultOptions& options, LossList list);

  bool is_lost(const PacketAddress& packet);
  double loss_of(Rank source) const;
  std::uint64_t hash(HashStream stream, const PacketAddress& packet) const;
  bool happens(HashStream stream, const PacketAddress& packet, double probability) const;

  FaultOptions options_;
  LossList list_;
  std::optional<GilbertLoss> bursts_;  // unset if losses are independent
};

}  // namespace leeway::impairment
