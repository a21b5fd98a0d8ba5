#include "impairment/fault_plan.h"

#include <utility>

#include "base/limits.h"
#include "base/philox.h"

namespace leeway::impairment {
namespace {

// Limit on the mean length of a burst, in packets. It bounds the hashes that GilbertLoss computes
// for one packet, which are about as many as a burst has packets. A longer loss is an outage.
constexpr double kBurstMax = 65536.0;
constexpr Duration kDelayMax = std::chrono::seconds(60);

Status check_probability(const char* name, double value) {
  if (value >= 0.0 && value <= 1.0) return {};  // this is false for NaN, too
  return Status::error(StatusCode::kInvalidArgument,
                       "fault %s=%g: a probability lies between 0 and 1", name, value);
}

Status check_values(const FaultOptions& options) {
  const std::pair<const char*, double> probabilities[] = {{"loss", options.loss},
                                                          {"dup", options.duplicate},
                                                          {"reorder", options.reorder},
                                                          {"corrupt", options.corrupt}};
  for (const auto& [name, value] : probabilities) {
    if (Status status = check_probability(name, value); !status.ok()) return status;
  }
  for (const double value : options.link_loss) {
    if (Status status = check_probability("link", value); !status.ok()) return status;
  }
  if (options.link_loss.size() > static_cast<std::size_t>(limits::kPeersMax)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "fault link: %zu links, at most %d ranks are supported",
                         options.link_loss.size(), limits::kPeersMax);
  }
  if (!(options.burst >= 1.0 && options.burst <= kBurstMax)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "fault burst=%g: a mean burst has 1 to %g packets", options.burst,
                         kBurstMax);
  }
  if (options.delay < Duration{0} || options.delay > kDelayMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "fault delay=%lldns: 0 to 60 s are supported",
                         static_cast<long long>(options.delay.count()));
  }
  return {};
}

}  // namespace

Status check_faults(const FaultOptions& options) {
  return FaultPlan::create(options).status();
}

Result<FaultPlan> FaultPlan::create(const FaultOptions& options) {
  if (Status status = check_values(options); !status.ok()) return status;
  Result<LossList> list = LossList::parse(options.list);
  if (!list.ok()) return list.status();
  return FaultPlan(options, std::move(*list));
}

FaultPlan::FaultPlan(const FaultOptions& options, LossList list)
    : options_(options), list_(std::move(list)) {
  if (options.burst > 1.0) bursts_.emplace(options.seed, options.burst);
}

Fate FaultPlan::fate(const PacketAddress& packet) {
  Fate fate;
  fate.lost = is_lost(packet);
  if (fate.lost) return fate;
  fate.duplicate = happens(HashStream::duplicate, packet, options_.duplicate);
  fate.corrupt = happens(HashStream::corrupt, packet, options_.corrupt);
  if (fate.corrupt) fate.corrupt_bit = hash(HashStream::corrupt_bit, packet);
  if (happens(HashStream::reorder, packet, options_.reorder)) {
    fate.reorder =
        1 + static_cast<int>(hash(HashStream::reorder_distance, packet) % kReorderDistanceMax);
  }
  fate.delay = options_.delay;
  return fate;
}

bool FaultPlan::is_lost(const PacketAddress& packet) {
  if (list_.contains(packet)) return true;
  const double rate = loss_of(packet.source);
  // Control datagrams are too few and too far apart for bursts, so each is lost by itself.
  if (!bursts_ || packet.control) return happens(HashStream::loss, packet, rate);
  if (rate <= 0.0) return false;
  // A burst hits packets that are sent in a row. In the first pass their order is that of
  // positions, in later passes that of indices.
  const std::uint32_t place = packet.attempt == 0 ? packet.position.value : packet.index.value;
  return bursts_->lost(
      {packet.source, packet.destination, packet.round, packet.phase, packet.attempt}, place, rate);
}

double FaultPlan::loss_of(Rank source) const {
  return source < options_.link_loss.size() ? options_.link_loss[source] : options_.loss;
}

std::uint64_t FaultPlan::hash(HashStream stream, const PacketAddress& packet) const {
  const std::uint32_t link = link_word(packet.source, packet.destination);
  if (packet.control) {
    return keyed_hash(options_.seed, link, question_word(stream, true, packet.type, 0),
                      packet.sequence, 0);
  }
  return keyed_hash(options_.seed, link, question_word(stream, false, packet.phase, packet.attempt),
                    packet.round, packet.index.value);
}

bool FaultPlan::happens(HashStream stream, const PacketAddress& packet, double probability) const {
  return probability > 0.0 && to_unit(hash(stream, packet)) < probability;
}

}  // namespace leeway::impairment
