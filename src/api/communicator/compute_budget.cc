// Public interface of src/math/budget: reads the clock, and carries out the stages that
// ThresholdAgreement finds due.
#include "leeway/compute_budget.h"

#include "budget/step_gate.h"
#include "budget/threshold_agreement.h"
#include "communicator/compute_options.h"
#include "driving/driver.h"

namespace leeway {
namespace {

using budget::StepGate;
using budget::ThresholdAgreement;
using internal::exact_options;
using internal::milliseconds;
using internal::refused;
using Stage = ThresholdAgreement::Stage;

budget::StepGateOptions gate_options(const ComputeBudgetOptions& options) {
  const bool fixed = options.threshold.kind == ComputeThreshold::Kind::fixed;
  return {.micro_batches = options.micro_batches,
          .micro_batches_min = options.micro_batches_min,
          .warm_up_steps = options.warm_up_steps,
          .threshold = fixed ? options.threshold.value : budget::kNoThreshold};
}

budget::AgreementOptions agreement_options(const ComputeBudgetOptions& options, int ranks) {
  return {.automatic = options.threshold.kind == ComputeThreshold::Kind::automatic,
          .ranks = static_cast<std::uint32_t>(ranks),
          .micro_batches = options.micro_batches,
          .micro_batches_min = options.micro_batches_min,
          .warm_up_steps = options.warm_up_steps,
          .window_steps = options.window_steps,
          .reestimate_steps = options.reestimate_steps,
          .drift_tolerance = options.drift_tolerance};
}

}  // namespace

struct ComputeBudget::Impl {
  Communicator& communicator;
  const ComputeBudgetOptions options;
  StepGate gate;
  std::optional<ThresholdAgreement> agreement;  // set if ranks exchange anything
  std::vector<Work> exchange;                   // in flight
  ComputeCounts global;
  std::uint64_t exchanges = 0;
  std::uint64_t exchange_waits = 0;
  std::uint64_t exchange_failures = 0;
  Status exchange_problem;

  Impl(Communicator& communicator_in, const ComputeBudgetOptions& options_in)
      : communicator(communicator_in), options(options_in), gate(gate_options(options_in)) {
    if (options.window_steps > 0)
      agreement.emplace(agreement_options(options, communicator.size()));
  }
  ~Impl() { finish_exchange(); }

  bool automatic() const { return options.threshold.kind == ComputeThreshold::Kind::automatic; }
  Instant now() const {
    return options.clock ? Instant{options.clock().count()} : driving::steady_now();
  }

  bool next() {
    if (!gate.in_step()) return begin_step();
    const bool more =
        options.device_seconds ? gate.next(now(), options.device_seconds()) : gate.next(now());
    if (!more) end_step();
    return more;
  }

  bool should_stop() {
    const bool stop = gate.should_stop(now());
    if (stop) end_step();
    return stop;
  }

  // Handles the exchange that is due, then starts the step's clock. If a window of steps ends here,
  // its wall time ends when this clock starts.
  bool begin_step() {
    const std::uint64_t step = gate.steps_begun();
    const Stage due = agreement ? agreement->due(step) : Stage::none;
    if (due == Stage::tables) exchange_tables();
    if (due == Stage::conclusion) conclude(step);
    gate.next(now());
    if (agreement) agreement->begin_step(step, gate.step_start());
    if (due == Stage::bounds) start(agreement->bounds(), ReduceOp::max);
    return true;
  }

  void end_step() {
    if (agreement) agreement->end_step(gate);
  }

  template <typename T>
  void start(std::span<T> values, ReduceOp op) {
    exchange.push_back(
        communicator.all_reduce_async(values, exact_options(op, options.exchange_deadline)));
  }

  // Takes the results of the exchange and returns true if it succeeded. Rarely waits, because the
  // exchange began some steps ago.
  bool finish_exchange() {
    bool waited = false;
    Status problem;
    for (Work& work : exchange) {
      waited |= !work.done();
      if (const auto report = work.wait(); !report.ok()) problem = report.status();
    }
    exchange.clear();
    if (waited) ++exchange_waits;
    if (!problem.ok()) {
      ++exchange_failures;
      exchange_problem = problem;
    }
    return problem.ok();
  }

  void exchange_tables() {
    agreement->make_tables(gate.counts(), finish_exchange());
    if (automatic()) {
      start(agreement->cuts(), ReduceOp::max);
      start(agreement->sums(), ReduceOp::sum);
    }
    start(agreement->totals(), ReduceOp::sum);
  }

  void conclude(std::uint64_t step) {
    const bool ok = finish_exchange();
    agreement->conclude(step, ok);
    if (!ok) return;
    ++exchanges;
    global = agreement->global();
    if (automatic()) gate.set_threshold(agreement->threshold());
  }

  // Number of the first micro-batch of the current step; between steps, of the last step.
  std::uint64_t first_micro_batch() const {
    if (gate.steps_begun() == 0) return 0;
    if (options.compensation != DropCompensation::requeue)
      return (gate.steps_begun() - 1) * options.micro_batches;
    return gate.counts().completed - (gate.in_step() ? 0 : gate.completed());
  }
};

ComputeBudget::ComputeBudget(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ComputeBudget::~ComputeBudget() = default;

Result<std::unique_ptr<ComputeBudget>> ComputeBudget::create(Communicator& communicator,
                                                             const ComputeBudgetOptions& options) {
  if (Status status = internal::agree_on(options, communicator); !status.ok()) return status;
  return std::unique_ptr<ComputeBudget>(
      new ComputeBudget(std::make_unique<Impl>(communicator, options)));
}

bool ComputeBudget::next_micro_batch() {
  return impl_->next();
}
bool ComputeBudget::should_stop() {
  return impl_->should_stop();
}

double ComputeBudget::weight() const {
  const bool realised = impl_->options.normalisation == Normalisation::realised_weight;
  return realised ? impl_->gate.completed() : impl_->options.micro_batches;
}
std::uint32_t ComputeBudget::completed() const {
  return impl_->gate.completed();
}
std::uint64_t ComputeBudget::micro_batch() const {
  return impl_->first_micro_batch() + completed();
}
MicroBatchRange ComputeBudget::dropped() const {
  if (impl_->gate.steps_begun() == 0) return {};
  return {micro_batch(), impl_->options.micro_batches - completed()};
}

// With compensation, steps_planned * (completed + dropped) / completed steps are needed, rounded
// up. The counts are micro-batches of all ranks so far. Integers make the result equal on all
// ranks.
std::uint64_t ComputeBudget::steps_due(std::uint64_t steps_planned) const {
  const ComputeCounts& global = impl_->global;
  std::uint64_t steps = steps_planned;
  if (impl_->options.compensation != DropCompensation::none && global.completed > 0) {
    steps += (steps_planned * global.dropped + global.completed - 1) / global.completed;
  }
  const std::uint64_t done = impl_->gate.counts().steps;
  return steps > done ? steps - done : 0;
}

Duration ComputeBudget::threshold() const {
  return impl_->gate.threshold();
}

ComputeStatistics ComputeBudget::statistics() const {
  ComputeStatistics statistics{.local = impl_->gate.counts(),
                               .global = impl_->global,
                               .exchanges = impl_->exchanges,
                               .exchange_waits = impl_->exchange_waits,
                               .exchange_failures = impl_->exchange_failures};
  if (impl_->automatic()) {
    statistics.estimates = impl_->agreement->estimates();
    statistics.drifts = impl_->agreement->drifts();
    statistics.estimate = impl_->agreement->estimate();
  }
  return statistics;
}

Status ComputeBudget::status() const {
  if (!impl_->exchange_problem.ok()) return impl_->exchange_problem;
  const StepGate& gate = impl_->gate;
  if (gate.counts().threshold_clamps == 0) return Status();
  return refused(impl_->communicator.rank(),
                 "threshold %.3f ms is below the shortest micro-batch seen, %.3f ms: steps end "
                 "after one; raise it",
                 milliseconds(gate.threshold()), milliseconds(gate.shortest()));
}

Status ComputeBudget::synchronize() {
  const CollectiveOptions exactly = exact_options(ReduceOp::sum, impl_->options.exchange_deadline);
  if (impl_->gate.in_step()) {
    // This all_reduce fails on purpose and takes the place of the refused call. So the peers' calls
    // fail, too, and the next calls match again.
    (void)impl_->communicator.all_reduce(TensorView(nullptr, 1, DataType::f64), exactly);
    return refused(impl_->communicator.rank(),
                   "synchronize() within a step; call it when next_micro_batch() said no");
  }
  auto row = ThresholdAgreement::row_of(impl_->gate.counts());
  const auto report = impl_->communicator.all_reduce(std::span(row), exactly);
  if (!report.ok()) return report.status();
  impl_->global = ThresholdAgreement::counts_of(row);
  return Status();
}

}  // namespace leeway
