#include "leeway/replica.h"

#include <algorithm>

#include "base/philox.h"
#include "codec/codec.h"
#include "collective/operation_spec.h"
#include "collective/replica_ledger.h"
#include "communicator/channels.h"
#include "driving/work_state.h"
#include "estimate/drift.h"
#include "estimate/drift_meter.h"

namespace leeway {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

// Stream tag of the keyed hash that chooses the elements whose drift is measured.
constexpr std::uint32_t kSampleStream = 0x44000000;
constexpr std::size_t kAgeBins = collective::ReplicaLedger::kAgeBins;

}  // namespace

struct Replica::Impl {
  // Channels of the communicator. The program may destroy the communicator before the replica.
  std::weak_ptr<internal::Channels> channels;
  const protocol::EndpointConfig config;
  std::span<float> parameters;
  ReplicaOptions options;
  collective::ReplicaLedger ledger;
  schedule::ShardMap shards;
  std::vector<float> master;  // parameters of our shard; not used if the codec rounds nothing

  MemoryRegistration sent;  // our shard; memory that cannot be registered is copied when it is sent

  std::uint64_t broadcasts = 0;
  std::uint64_t packets_expected = 0;
  std::uint64_t packets_arrived = 0;  // without those repaired because of age_max

  estimate::DriftMeter meter;
  std::uint64_t measurements = 0;
  // Indices of the sampled elements: drift_samples of each shard, shard after shard.
  std::vector<std::uint32_t> samples;
  std::vector<float> previous;  // own samples before the last optimizer step
  std::vector<float> steps;     // and the change that it made to them

  Impl(const std::shared_ptr<internal::Channels>& channels_in, std::span<float> parameters_in,
       const ReplicaOptions& options_in)
      : channels(channels_in),
        config(channels_in->config()),
        parameters(parameters_in),
        options(options_in),
        ledger({.self = config.self,
                .size = config.size,
                .elements = parameters_in.size(),
                .packet_elements =
                    collective::parameter_packet_elements(options_in.codec, config.datagram_bytes),
                .age_max = options_in.age_max}),
        shards(ledger.shards()),
        meter(shards[config.self].count > 0 ? options_in.drift_samples : 0,
              std::max<std::uint32_t>(2, options_in.drift_every)) {
    const auto own = own_parameters();
    if (!codec::format_of(options.codec, DataType::f32).identity())
      master.assign(own.begin(), own.end());
    choose_samples();
  }

  Result<CollectiveReport> run(const OperationSpec& spec) {
    if (const auto there = channels.lock()) return there->run(spec);
    return Status::error(StatusCode::kCancelled, "Replica: its communicator is gone");
  }

  std::span<float> own_parameters() const {
    const schedule::Shard own = shards[config.self];
    return parameters.subspan(own.offset, own.count);
  }

  // Chooses the elements to watch until the next measurement, the same on all ranks.
  void choose_samples() {
    samples.clear();
    if (options.drift_every == 0) return;
    const auto window = static_cast<std::uint32_t>(broadcasts / options.drift_every);
    for (Rank owner = 0; owner < config.size; ++owner) {
      const schedule::Shard shard = shards[owner];
      for (std::uint32_t i = 0; i < options.drift_samples && shard.count > 0; ++i) {
        const std::uint64_t draw = keyed_hash(config.seed, kSampleStream, window, owner, i);
        samples.push_back(static_cast<std::uint32_t>(shard.offset + draw % shard.count));
      }
    }
    previous.clear();
    for_own_samples([&](std::uint32_t element) { previous.push_back(parameters[element]); });
  }

  template <typename Visit>
  void for_own_samples(Visit&& visit) {
    const schedule::Shard own = shards[config.self];
    for (const std::uint32_t element : samples) {
      if (element >= own.offset && element < own.offset + own.count) visit(element);
    }
  }

  void watch_own_steps() {
    steps.clear();
    for_own_samples([&](std::uint32_t element) {
      float& before = previous[steps.size()];
      steps.push_back(parameters[element] - before);
      before = parameters[element];
    });
    if (!steps.empty()) meter.add_step(steps);
  }

  Result<CollectiveReport> broadcast(Delivery::Kind delivery) {
    // The broadcast encodes, and so rounds, the owned parameters. It must start from their float32
    // master copy, and not from what an earlier broadcast rounded.
    std::copy(master.begin(), master.end(), own_parameters().begin());
    watch_own_steps();
    OperationSpec spec{
        .kind = OperationKind::replica_broadcast, .input = parameters, .output = parameters};
    spec.options.delivery = {delivery, 1.0, options.deadline};
    spec.options.spread = delivery;
    spec.options.codec = options.codec;
    spec.ledger = ledger.begin_broadcast();
    auto report = run(spec);
    Status status = report.ok() ? note_arrivals(*report, delivery) : report.status();
    // Counts the broadcast whatever its outcome. The count decides whether drift is measured, and
    // ranks whose broadcasts end differently must still make the same calls.
    ++broadcasts;
    if (options.drift_every != 0 && broadcasts % options.drift_every == 0) {
      const Status measured = measure_drift();
      if (status.ok()) status = measured;
      choose_samples();
    }
    if (!status.ok()) return status;
    return report;
  }

  Status note_arrivals(const CollectiveReport& report, Delivery::Kind delivery) {
    // Under best effort, packets that were repaired because of age_max count as lost here.
    // Otherwise repair is part of the delivery, and repaired packets count as arrived.
    const bool repairs_count = delivery != Delivery::Kind::best_effort;
    for (const PeerReport& peer : report.peers) {
      packets_expected += peer.expected;
      packets_arrived += peer.arrived - (repairs_count ? 0 : peer.repaired);
    }
    const auto there = channels.lock();
    return ledger.finish_broadcast(options.deadline, there != nullptr && there->peer_left());
  }

  // Each rank tells all others its values of the sampled elements, and their ages.
  Status measure_drift() {
    const std::size_t count = samples.size();
    std::vector<float> mine(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = parameters[samples[i]];
      mine[count + i] = static_cast<float>(ledger.age_of(samples[i]));
    }
    std::vector<float> all(mine.size() * config.size);
    OperationSpec spec{
        .kind = OperationKind::all_gather, .input = std::span(mine), .output = std::span(all)};
    spec.options.delivery = exact(options.deadline);
    if (const auto report = run(spec); !report.ok()) return report.status();
    std::vector<float> values(config.size);
    std::vector<float> versions(config.size);
    for (std::size_t i = 0; i < count; ++i) {
      for (Rank rank = 0; rank < config.size; ++rank) {
        values[rank] = all[rank * mine.size() + i];
        versions[rank] = all[rank * mine.size() + count + i];
      }
      const Rank owner = ledger.owner_of(samples[i]);
      meter.add_sample(values, owner);
      add_gaps(values, versions, owner);
    }
    ++measurements;
    return Status();
  }

  // Adds the squared gap of one element between each rank that received the last broadcast (version
  // 0) and each rank that did not. `values` and `versions` are by rank.
  void add_gaps(std::span<const float> values, std::span<const float> versions, Rank owner) {
    for (Rank fresh = 0; fresh < config.size; ++fresh) {
      if (fresh == owner || versions[fresh] != 0.0f) continue;
      for (Rank stale = 0; stale < config.size; ++stale) {
        if (stale == owner || versions[stale] == 0.0f) continue;
        const double gap = static_cast<double>(values[fresh]) - values[stale];
        meter.add_gap(gap * gap);
      }
    }
  }
};

Replica::Replica(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replica::~Replica() = default;

Result<std::unique_ptr<Replica>> Replica::create(Communicator& communicator,
                                                 std::span<float> parameters,
                                                 const ReplicaOptions& options) {
  if (communicator.channels_->forked()) return driving::forked();
  if (parameters.empty())
    return Status::error(StatusCode::kInvalidArgument, "Replica: no parameters");
  if (options.age_max >= kAgeBins) {
    return Status::error(StatusCode::kInvalidArgument, "Replica: age_max %u is outside 0 .. %zu",
                         options.age_max, kAgeBins - 1);
  }
  if (Status status = validate(options.codec); !status.ok()) return status;
  if (options.codec.codec == Codec::automatic) {
    return Status::error(StatusCode::kInvalidArgument,
                         "Replica: codec automatic is for reductions; parameters need a fixed one");
  }
  auto impl = std::make_unique<Impl>(communicator.channels_, parameters, options);
  auto registered = communicator.register_memory(std::as_bytes(impl->own_parameters()));
  if (registered.ok()) impl->sent = std::move(*registered);
  return std::unique_ptr<Replica>(new Replica(std::move(impl)));
}

std::size_t Replica::owned_offset() const {
  return impl_->shards[impl_->config.self].offset;
}
std::size_t Replica::owned_count() const {
  return impl_->shards[impl_->config.self].count;
}
std::span<float> Replica::owned() {
  return impl_->master.empty() ? impl_->own_parameters() : std::span(impl_->master);
}

Result<CollectiveReport> Replica::reduce_gradients(std::span<float> gradient,
                                                   const CollectiveOptions& options) {
  OperationSpec spec{.kind = OperationKind::replica_reduce,
                     .input = gradient,
                     .output = gradient,
                     .options = options};
  if (gradient.size() != impl_->parameters.size()) {  // it still takes its place
    spec.forfeit = std::make_shared<const Status>(Status::error(
        StatusCode::kInvalidArgument, "reduce_gradients: %zu gradients for %zu parameters",
        gradient.size(), impl_->parameters.size()));
  }
  return impl_->run(spec);
}

Result<CollectiveReport> Replica::broadcast_parameters() {
  return impl_->broadcast(impl_->options.delivery);
}
Result<CollectiveReport> Replica::synchronize() {
  return impl_->broadcast(Delivery::Kind::exact);
}

DriftReport Replica::drift() const {
  const Impl& impl = *impl_;
  DriftReport report;
  report.loss = impl.packets_expected == 0 ? 0.0
                                           : 1.0 - static_cast<double>(impl.packets_arrived) /
                                                       static_cast<double>(impl.packets_expected);
  const estimate::DriftMeasurement measured = impl.meter.result();
  report.measurements = impl.measurements;
  report.pair_measured = measured.pair;
  report.owner_measured = measured.owner;
  report.step_variance = measured.step_variance;
  report.step_mean_square = measured.step_mean_square;
  report.gap_mean_square = measured.gap;
  if (report.loss < 1.0) {
    const estimate::DriftModel model = estimate::independent_drift(report.loss);
    report.pair_predicted = model.pair.of(measured.step_variance, measured.step_mean_square);
    report.owner_predicted = model.owner.of(measured.step_variance, measured.step_mean_square);
    report.pair_predicted_gap = estimate::pair_drift_from_gap(report.loss, measured.gap);
  }
  report.age_max_seen = impl.ledger.age_max_seen();
  report.blocks_refreshed = impl.ledger.blocks_refreshed();
  report.age_histogram = impl.ledger.age_histogram();
  report.age_mean = impl.ledger.age_mean();
  return report;
}

}  // namespace leeway
