// How a call is cut into flows of packets, and what its halves promise: the same sizes, classes and
// deadlines as src/collective derives from an operation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "endpoint/endpoints.h"
#include "leeway/codec.h"
#include "leeway/options.h"
#include "scenario.pb.h"
#include "schedule/packet_grid.h"

namespace leeway::sim {

inline constexpr int kReduceHalf = 0;
inline constexpr int kSpreadHalf = 1;
inline constexpr int kHalves = 2;

// One half of a call, of all ranks.
struct AbstractHalf {
  bool active = false;
  Delivery::Kind delivery = Delivery::Kind::exact;
  double loss_max = 0;
  bool repairable = true;
  bool retained = false;         // the caller need not wait for confirmations
  bool streaming = false;        // chunks become available as the reduction finishes them
  std::uint32_t full_bytes = 0;  // datagram payload of a packet that is not a flow's last
  std::uint32_t train_packets = 1;
  std::vector<schedule::PacketGrid> grids;  // by owner
  std::vector<std::uint32_t> packets;       // by owner
  std::vector<std::uint32_t> last_bytes;    // by owner
  std::vector<std::uint32_t>
      ledger_words;  // spread: where each owner's bits begin in a rank's ledger

  std::uint32_t bytes_of(std::uint32_t owner, std::uint32_t index) const {
    return index + 1 == packets[owner] ? last_bytes[owner] : full_bytes;
  }
};

struct AbstractPlan {
  CallKind kind = CallKind::all_reduce;
  std::uint64_t bytes = 0;
  std::uint32_t ranks = 0;
  std::array<AbstractHalf, kHalves> halves;
  Delivery::Kind delivery = Delivery::Kind::exact;  // of the call
  std::int64_t deadline_ns = 0;                     // from submission
  std::int64_t reduce_deadline_ns = 0;              // the same
  bool sums_early = false;   // a packet with all its contributions is summed at once
  bool sums_passed = false;  // and a chunk that every sender has passed

  // The data of a flow belong to its receiver's shard in the reduce half, to its sender's in the
  // other.
  static std::uint32_t owner(int half, std::uint32_t from, std::uint32_t to) {
    return half == kReduceHalf ? to : from;
  }
  std::uint32_t flow_packets(int half, std::uint32_t from, std::uint32_t to) const {
    return halves[half].active ? halves[half].packets[owner(half, from, to)] : 0;
  }
  // Where the arrival bits of what `to` receives begin, in 64-bit words; and all of them.
  std::uint32_t ledger_at(int half, std::uint32_t from, std::uint32_t to) const;
  std::uint32_t ledger_words(std::uint32_t to) const;
};

// What an operation of a scenario asks for, parsed once.
struct AbstractOperation {
  CodecOptions codec;
  CodecOptions spread_codec;
  CodecOptions replica_codec;
  Delivery delivery;
  bool delivery_given = false;
  Delivery::Kind spread = Delivery::Kind::exact;
  Delivery replica_delivery;
  Estimator estimator = Estimator::ratio;
  bool residual = false;
  std::uint32_t datagram_bytes = 0;

  static Result<AbstractOperation> make(const scenario::Operation& operation);
};

AbstractPlan make_abstract_plan(const AbstractOperation& operation, CallKind kind,
                                std::uint64_t bytes, std::uint32_t ranks);

}  // namespace leeway::sim
