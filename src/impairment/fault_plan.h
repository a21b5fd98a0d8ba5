// Decides what becomes of a datagram: a pure function of the options and the packet's address.
//
// Data packets are keyed by (seed, source, destination, round, phase, index, attempt), control
// datagrams by (seed, source, destination, type, sequence); never by time or order of arrival. So
// one seed loses the same packets over any transport and in the simulator. No input or output
// happens here.
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

// Most later datagrams that overtake a reordered one.
inline constexpr int kReorderDistanceMax = 8;

struct Fate {
  bool lost = false;  // the rest has no meaning then
  bool duplicate = false;
  bool corrupt = false;
  std::uint64_t corrupt_bit = 0;  // which bit to flip, modulo the datagram's length in bits
  // Held back behind so many later datagrams, 0 .. kReorderDistanceMax
  int reorder = 0;
  Duration delay{0};
};

// Options in range, or an error that names the one that is not.
Status check_faults(const FaultOptions& options);

class FaultPlan {
 public:
  static Result<FaultPlan> create(const FaultOptions& options);

  // Not const: answers about bursts are remembered. That changes the cost of a question, never its
  // answer.
  Fate fate(const PacketAddress& packet);

 private:
  FaultPlan(const FaultOptions& options, LossList list);

  bool is_lost(const PacketAddress& packet);
  double loss_of(Rank source) const;
  std::uint64_t hash(HashStream stream, const PacketAddress& packet) const;
  bool happens(HashStream stream, const PacketAddress& packet, double probability) const;

  FaultOptions options_;
  LossList list_;
  std::optional<GilbertLoss> bursts_;  // nothing: independent losses
};

}  // namespace leeway::impairment
