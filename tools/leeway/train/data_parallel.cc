#include "train/data_parallel.h"

#include <utility>
#include <vector>

#include "train/sharded_adam.h"

namespace leeway::tools::train {
namespace {

// Options of the gradient reductions, and the residual if error feedback is on.
class Reduction {
 public:
  Reduction(const Settings& settings, std::size_t elements)
      : options_(settings.reduce), residual_(settings.error_feedback ? elements : 0) {
    options_.residual = residual_;
  }
  Reduction(const Reduction&) = delete;  // not copied, because its options point into it
  Reduction& operator=(const Reduction&) = delete;

  const CollectiveOptions& with_weight(double weight) {
    options_.weight = weight;
    return options_;
  }

 private:
  CollectiveOptions options_;
  // residual of the whole gradient, because every element is sent to some owner
  std::vector<float> residual_;
};

// Sharded optimizer (ZeRO-1) with bounded-drift parameter broadcasts.
class ReplicaParallel final : public DataParallel {
 public:
  ReplicaParallel(Communicator& communicator, std::unique_ptr<Replica> replica,
                  std::span<float> gradient, const Settings& settings)
      : DataParallel(communicator, gradient),
        replica_(std::move(replica)),
        gradient_(gradient),
        reduction_(settings, gradient.size()),
        adam_(replica_->owned_count()) {}

  Status update(double learning_rate, double weight) override {
    const auto reduced = replica_->reduce_gradients(gradient_, reduction_.with_weight(weight));
    if (!reduced.ok()) return reduced.status();
    record_reduction(*reduced);
    adam_.step(replica_->owned(),
               gradient_.subspan(replica_->owned_offset(), replica_->owned_count()), learning_rate);
    const auto broadcast = replica_->broadcast_parameters();
    if (!broadcast.ok()) return broadcast.status();
    record_broadcast(*broadcast);
    return Status();
  }

  std::optional<DriftReport> drift() const override { return replica_->drift(); }

 private:
  std::unique_ptr<Replica> replica_;
  std::span<float> gradient_;
  Reduction reduction_;
  ShardedAdam adam_;
};

// Replicated optimizer after an all-reduce with an exact spread half: every rank makes its step
// with the same bits.
class ReplicatedParallel final : public DataParallel {
 public:
  ReplicatedParallel(Communicator& communicator, std::span<float> parameters,
                     std::span<float> gradient, const Settings& settings)
      : DataParallel(communicator, gradient),
        communicator_(communicator),
        parameters_(parameters),
        gradient_(gradient),
        reduction_(settings, gradient.size()),
        adam_(parameters.size()) {}

  Status update(double learning_rate, double weight) override {
    const auto reduced =
        communicator_.all_reduce(TensorView(gradient_), reduction_.with_weight(weight));
    if (!reduced.ok()) return reduced.status();
    record_reduction(*reduced);
    adam_.step(parameters_, gradient_, learning_rate);
    return Status();
  }

  std::optional<DriftReport> drift() const override { return std::nullopt; }

 private:
  Communicator& communicator_;
  std::span<float> parameters_;
  std::span<float> gradient_;
  Reduction reduction_;
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

DataParallel::DataParallel(Communicator& communicator, std::span<float> gradient) {
  auto registered = communicator.register_memory(std::as_bytes(gradient));
  // If registering fails, calls copy the gradient.
  if (registered.ok()) gradient_registered_ = std::move(*registered);
}

void DataParallel::record_reduction(const CollectiveReport& report) {
  traffic_.add(report);
  noise_.add(report.noise);
  codecs_.add(report.codec);
}

Result<std::unique_ptr<DataParallel>> make_data_parallel(Communicator& communicator,
                                                         std::span<float> parameters,
                                                         std::span<float> gradient,
                                                         const Settings& settings) {
  if (settings.mode == Mode::ddp) {
    return std::unique_ptr<DataParallel>(
        std::make_unique<ReplicatedParallel>(communicator, parameters, gradient, settings));
  }
  auto replica = Replica::create(communicator, parameters, settings.replica);
  if (!replica.ok()) return replica.status();
  return std::unique_ptr<DataParallel>(std::make_unique<ReplicaParallel>(
      communicator, std::move(replica).value(), gradient, settings));
}

}  // namespace leeway::tools::train
