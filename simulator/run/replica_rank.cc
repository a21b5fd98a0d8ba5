#include "run/replica_rank.h"

#include <algorithm>

#include "codec/codec.h"
#include "leeway/codec.h"
#include "scenario/units.h"

namespace leeway::sim {

Result<ReplicaRank> ReplicaRank::make(const scenario::Operation& operation, std::uint32_t rank,
                                      std::uint32_t ranks, std::span<float> parameters) {
  const auto codec = parse_codec(operation.replica().codec());
  if (!codec.ok()) return codec.status();
  ReplicaRank replica;
  replica.rank_ = static_cast<Rank>(rank);
  replica.deadline_ = Duration(ns_of_ms(operation.replica().deadline_ms()));
  replica.parameters_ = parameters;
  replica.ledger_ = std::make_unique<collective::ReplicaLedger>(collective::ReplicaLedger::Options{
      .self = replica.rank_,
      .size = static_cast<int>(ranks),
      .elements = parameters.size(),
      .packet_elements = collective::parameter_packet_elements(*codec, operation.datagram_bytes()),
      .age_max = operation.replica().age_max()});
  const auto own = replica.own_parameters();
  if (!codec::format_of(*codec, DataType::f32).identity())
    replica.master_.assign(own.begin(), own.end());
  return replica;
}

std::span<float> ReplicaRank::owned() {
  return master_.empty() ? own_parameters() : std::span(master_);
}

collective::BroadcastLedger* ReplicaRank::begin_broadcast() {
  std::copy(master_.begin(), master_.end(),
            own_parameters().begin());  // rounded by the codec of the broadcast that follows
  return ledger_->begin_broadcast();
}

}  // namespace leeway::sim
