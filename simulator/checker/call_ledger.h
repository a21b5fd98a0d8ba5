// The checkers' own record of every call and of the packets that the network handed to each rank.
// The checkers never read the engine's record, so the two records can be compared.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/bitmap.h"
#include "base/time.h"
#include "checker/call_plan.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

// The packets of one sender to one receiver in one half of a call.
struct FlowLedger {
  std::uint32_t packets = 0;
  // Distinct packets that the receiver got during its call, or could compute from parity.
  std::uint32_t distinct = 0;
  std::uint32_t copies = 0;    // copies of all packets
  std::uint32_t repaired = 0;  // distinct packets that answer a request, or follow from parity
  std::uint32_t unsure = 0;    // distinct packets that the engine was free to call late
  // packets of `unsure` that were computed from parity: the engine may have called late a packet
  // that the computation needs
  std::uint32_t unsure_follow = 0;
  std::uint32_t dropped_early = 0;  // came before the call was open, and no place was left
  std::uint32_t lost = 0;           // first passes that the network lost
  bool ended = false;               // its last packet or its END came
  std::uint64_t ended_batch = 0;
  bool left = false;  // the sender said that it has left the call, or the group
  Instant left_at;
  std::uint64_t left_batch = 0;
  float weight = std::numeric_limits<float>::quiet_NaN();
  // Weight given by a packet that the engine may call late.
  float late_weight = std::numeric_limits<float>::quiet_NaN();
  Bitmap seen;
  Bitmap maybe_late;
  struct Distinct {
    std::uint32_t index;
    bool repaired;
  };
  std::vector<Distinct> order;          // as they came
  Bitmap parity_seen;                   // by number; without bits before the first
  std::vector<std::uint32_t> parities;  // number of different parities, by code

  std::uint32_t missing() const { return packets - distinct; }
  // Notes that the flow's first pass ended in this batch (datagrams that the engine reads
  // together). Returns false if it had ended before.
  bool note_end(std::uint64_t batch) {
    if (ended) return false;
    ended = true;
    ended_batch = batch;
    return true;
  }
  // Notes the weight in a packet. The first packet that is certainly in time sets `weight`.
  void note_weight(float in_packet, bool late) {
    if (late) {
      late_weight = in_packet;
    } else if (std::isnan(weight)) {
      weight = in_packet;
    }
  }
};

// A packet that came before its receiver had opened the call. The engine reads such packets sorted
// by sender and by place in the early buffer. After a place was freed and taken again, this is not
// the order of arrival.
struct EarlyPacket {
  Rank from = 0;
  std::uint32_t place = 0;  // its place among the early packets of its sender
  wire::DataHeader header;
};

// One rank's side of one call.
struct RankLedger {
  bool submitted = false;
  bool opened = false;
  bool over = false;  // returned, or dead
  bool succeeded = false;
  Instant submitted_at;
  Duration deadline{0};        // from submitted_at on
  bool in_place = false;       // results replace the rank's contribution in place
  std::uint64_t sequence = 0;  // number of the rank's operations before this one, messages included
  float weight = 1.0f;
  // weight of the rank's contribution, by owner; empty if it is `weight` for all
  std::vector<float> owner_weights;
  std::vector<float> source;                     // the rank's contribution, error feedback included
  std::vector<float> control;                    // the rank's guess of its own shard, if it has one
  std::array<std::vector<FlowLedger>, 2> flows;  // [half][sender]
  std::vector<std::byte> staged;  // first copies of encoded contributions, by sender and packet
  std::vector<EarlyPacket> early;
  // For best effort, by sender: how many chunks the sender has certainly passed, in the order in
  // which all senders send chunks.
  std::vector<std::uint32_t> passed;
  std::uint32_t passed_by_all = 0;

  float weight_for(Rank owner) const {
    return owner_weights.empty() ? weight : owner_weights[owner];
  }
  FlowLedger& flow(wire::FlowKind kind, Rank from) {
    return flows[static_cast<std::size_t>(kind)][from];
  }
  const FlowLedger& flow(wire::FlowKind kind, Rank from) const {
    return flows[static_cast<std::size_t>(kind)][from];
  }
};

// The result that all ranks of a call must hold. The first rank that holds a packet fills in its
// elements.
struct SharedResult {
  std::vector<float> values;         // elements of a rank's result
  std::vector<Bitmap> known;         // by owner, one bit a packet
  std::vector<std::uint32_t> count;  // packets known, by owner
};

struct CallLedger {
  std::uint32_t number = 0;  // number among the calls of every rank; the round number on the wire
  std::uint32_t round = 0;   // round of the run
  CallKind kind = CallKind::all_reduce;
  CallPlan plan;
  std::vector<RankLedger> ranks;
  std::uint32_t over = 0;  // number of ranks whose side is over
  SharedResult shared;

  // Return the time at which the deadline ends the rank's reduce half, or the whole call.
  Instant reduce_ends(Rank rank) const {
    return ranks[rank].submitted_at + plan.reduce_deadline(ranks[rank].deadline);
  }
  Instant ends(Rank rank) const { return ranks[rank].submitted_at + ranks[rank].deadline; }

  // packet_bytes() is the distance between packets in `staged`. staged() returns the place of one
  // packet.
  std::size_t packet_bytes(Rank owner) const;
  ByteSpan staged(Rank owner, Rank from, std::uint32_t index) const;

  // Returns the packet that `from` contributes to the owner's shard; `from` must have submitted. An
  // encoded packet is written to `memory`.
  ByteSpan brought(Rank owner, Rank from, std::uint32_t index, std::uint64_t seed,
                   std::vector<std::byte>& memory) const;
};

// Text for a finding: the call, the rank, and the virtual time.
std::string where(Instant now, Rank rank, const CallLedger& call);

// Returns true if two spans of one length hold the same bits.
inline bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace leeway::sim
