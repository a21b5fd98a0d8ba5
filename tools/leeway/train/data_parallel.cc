#include "train/data_parallel.h"

#include <utility>

#include "train/sharded_adam.h"

namespace leeway::tools::train {
namespace {

// Sharded optimizer (ZeRO-1) with bounded-drift parameter broadcasts.
class ReplicaParallel final : public DataParallel {
 public:
  ReplicaParallel(std::unique_ptr<Replica> replica, std::span<float> gradient,
                  const CollectiveOptions& reduce)
      : replica_(std::move(replica)),
        gradient_(gradient),
        reduce_(reduce),
        adam_(replica_->owned_count()) {}

  Status update(double learning_rate) override {
    const auto reduced = replica_->reduce_gradients(gradient_, reduce_);
    if (!reduced.ok()) return reduced.status();
    traffic_.add(*reduced);
    adam_.step(replica_->owned(),
               gradient_.subspan(replica_->owned_offset(), replica_->owned_count()), learning_rate);
    const auto broadcast = replica_->broadcast_parameters();
    if (!broadcast.ok()) return broadcast.status();
    traffic_.add(*broadcast);
    return Status();
  }

  std::optional<DriftReport> drift() const override { return replica_->drift(); }

 private:
  std::unique_ptr<Replica> replica_;
  std::span<float> gradient_;
  CollectiveOptions reduce_;
  ShardedAdam adam_;
};

// Replicated optimizer over an all-reduce with an exact spread: every rank steps on the same bits.
class ReplicatedParallel final : public DataParallel {
 public:
  ReplicatedParallel(Communicator& communicator, std::span<float> parameters,
                     std::span<float> gradient, const CollectiveOptions& reduce)
      : communicator_(communicator),
        parameters_(parameters),
        gradient_(gradient),
        reduce_(reduce),
        adam_(parameters.size()) {}

  Status update(double learning_rate) override {
    const auto reduced = communicator_.all_reduce(TensorView(gradient_), reduce_);
    if (!reduced.ok()) return reduced.status();
    traffic_.add(*reduced);
    adam_.step(parameters_, gradient_, learning_rate);
    return Status();
  }

  std::optional<DriftReport> drift() const override { return std::nullopt; }

 private:
  Communicator& communicator_;
  std::span<float> parameters_;
  std::span<float> gradient_;
  CollectiveOptions reduce_;
  ShardedAdam adam_;
};

}  // namespace

void Traffic::add(const CollectiveReport& report) {
  for (const PeerReport& peer : report.peers) {
    packets_expected += peer.expected;
    packets_arrived_first += peer.arrived - peer.repaired;
  }
  bytes_sent += report.bytes_sent;
  elements_untouched += report.elements_untouched;
  deadline_cuts += report.deadline_cut ? 1 : 0;
}

double Traffic::loss() const {
  if (packets_expected == 0) return 0.0;
  return 1.0 - static_cast<double>(packets_arrived_first) / static_cast<double>(packets_expected);
}

Result<std::unique_ptr<DataParallel>> make_data_parallel(Communicator& communicator,
                                                         std::span<float> parameters,
                                                         std::span<float> gradient,
                                                         const Settings& settings) {
  if (settings.mode == Mode::ddp) {
    return std::unique_ptr<DataParallel>(
        std::make_unique<ReplicatedParallel>(communicator, parameters, gradient, settings.reduce));
  }
  auto replica = Replica::create(communicator, parameters, settings.replica);
  if (!replica.ok()) return replica.status();
  return std::unique_ptr<DataParallel>(
      std::make_unique<ReplicaParallel>(std::move(replica).value(), gradient, settings.reduce));
}

}  // namespace leeway::tools::train
