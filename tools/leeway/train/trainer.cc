#include "train/trainer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include "train/accumulation.h"
#include "train/data_parallel.h"
#include "train/evaluation.h"
#include "train/group_sums.h"
#include "train/model.h"
#include "train/sharded_adam.h"
#include "train/step_log.h"

namespace leeway::tools::train {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

GptShape shape_of(const Settings& settings, const Corpus& corpus) {
  return {corpus.vocabulary(), settings.context, settings.layers, settings.width, settings.heads};
}

// FNV-1a on whole words. It finds accidental differences, but does not resist attackers.
constexpr std::uint64_t kHashBasis = 0xcbf29ce484222325ULL;
std::uint64_t hash_step(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x100000001b3ULL;
}

// Returns a hash of all settings that must be equal on all ranks.
std::uint64_t fingerprint(const Settings& settings, const Corpus& corpus, std::uint64_t seed) {
  std::uint64_t hash = corpus.fingerprint();
  const ComputeSettings& compute = settings.compute;
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(settings.mode), settings.steps, seed,
        static_cast<std::uint64_t>(settings.batch), static_cast<std::uint64_t>(settings.context),
        static_cast<std::uint64_t>(settings.layers), static_cast<std::uint64_t>(settings.width),
        static_cast<std::uint64_t>(settings.learning_rate * 1e9),
        static_cast<std::uint64_t>(compute.micro_batches),
        static_cast<std::uint64_t>(compute.compensation),
        static_cast<std::uint64_t>(compute.normalisation)}) {
    hash = hash_step(hash, value);
  }
  for (const char c : to_string(compute.straggler) + " " + to_string(compute.threshold))
    hash = hash_step(hash, static_cast<unsigned char>(c));
  return hash;
}

// Returns the first rank whose value differs from rank 0's, or nullopt if all are equal. All ranks
// get the same answer.
Result<std::optional<int>> first_dissenter(Communicator& communicator, std::uint64_t mine) {
  const auto bits = static_cast<std::int64_t>(mine);
  std::vector<std::int64_t> all(static_cast<std::size_t>(communicator.size()));
  const auto gathered =
      communicator.all_gather(ConstTensorView(std::span(&bits, 1)), TensorView(std::span(all)));
  if (!gathered.ok()) return gathered.status();
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::int64_t value) { return value != all[0]; });
  if (other == all.end()) return std::optional<int>();
  return std::optional<int>(static_cast<int>(other - all.begin()));
}

Status check_same_job(Communicator& communicator, std::uint64_t fingerprint) {
  const auto dissenter = first_dissenter(communicator, fingerprint);
  if (!dissenter.ok()) return dissenter.status();
  if (!*dissenter) return Status();
  return Status::error(StatusCode::kMismatch,
                       "rank 0 and rank %d train on different texts or with different options",
                       **dissenter);
}

// Checks that all ranks hold the same parameters bit for bit. In ddp mode they must, because all
// optimizers got the same gradients.
Status check_same_parameters(Communicator& communicator, std::span<const float> parameters) {
  std::uint64_t hash = kHashBasis;
  for (const float value : parameters) hash = hash_step(hash, std::bit_cast<std::uint32_t>(value));
  const auto dissenter = first_dissenter(communicator, hash);
  if (!dissenter.ok()) return dissenter.status();
  if (!*dissenter) return Status();
  return Status::error(StatusCode::kInternal,
                       "the models of rank 0 and rank %d differ after a run in ddp mode",
                       **dissenter);
}

Status check_loss(std::optional<double> loss, std::uint64_t step) {
  if (std::isfinite(loss.value_or(0.0))) return Status();
  return Status::error(
      StatusCode::kInvalidArgument,
      "training diverged: the loss is not a number at step %llu; lower --learning-rate",
      static_cast<unsigned long long>(step));
}

// The number of steps that are left, which is the same on all ranks. If further steps compensate
// for dropped samples, it follows from the samples that are left.
class Schedule {
 public:
  explicit Schedule(const Settings& settings) : settings_(settings) {}

  // Updates the number of steps that are left. All ranks must call it together before each step,
  // because at the end of a run that drops work they exchange their counts of samples.
  Status look_at(ComputeBudget& budget) {
    left_ = budget.steps_due(settings_.steps);
    if (left_ > 0 || !settings_.compute.drops()) return Status();
    const Status status = budget.synchronize();
    left_ = budget.steps_due(settings_.steps);
    return status;
  }
  bool is_over() const { return left_ == 0; }
  // Returns the learning rate of step number `step`, from 0.
  double learning_rate(std::uint64_t step) const {
    return learning_rate_at(step, steps_expected(step), settings_.steps, settings_.learning_rate);
  }
  std::uint64_t steps_expected(std::uint64_t step) const { return step + left_; }

 private:
  const Settings& settings_;
  std::uint64_t left_ = 0;
};

std::optional<double> threshold_ms(const ComputeBudget& budget) {
  if (budget.threshold() == Duration::max()) return std::nullopt;
  return std::chrono::duration<double, std::milli>(budget.threshold()).count();
}

void show(const Schedule& schedule, const StepLog& log, const Traffic& traffic,
          const ComputeBudget& budget, Clock::time_point now, Progress& progress) {
  StepStatus status = log.status(traffic.loss());
  status.steps = schedule.steps_expected(status.step - 1);
  if (const ComputeCounts counts = budget.statistics().local; counts.dropped > 0) {
    status.drop_rate = static_cast<double>(counts.dropped) / static_cast<double>(counts.planned);
    status.threshold_ms = threshold_ms(budget);
  }
  progress.on_step(status, now);
}

Status run_steps(const Settings& settings, Accumulation& accumulation, DataParallel& parallel,
                 StepLog& log, Progress& progress) {
  ComputeBudget& budget = accumulation.budget();
  Schedule schedule(settings);
  for (std::uint64_t step = 0;; ++step) {
    if (const Status status = schedule.look_at(budget); !status.ok()) return status;
    if (schedule.is_over()) break;
    const auto begin = Clock::now();
    const auto loss = accumulation.compute(step);
    if (const Status status = check_loss(loss, step); !status.ok()) return status;
    const Status updated = parallel.update(schedule.learning_rate(step), budget.weight());
    if (!updated.ok()) return updated;
    const auto end = Clock::now();
    log.add(loss, milliseconds(end - begin));
    show(schedule, log, parallel.traffic(), budget, end, progress);
  }
  progress.finish();
  return Status();
}

// Call it after the last step, when `budget` has counts of the whole group.
ComputeSummary summarise(const Settings& settings, std::uint64_t steps, int ranks,
                         const ComputeBudget& budget) {
  const ComputeStatistics statistics = budget.statistics();
  ComputeSummary summary;
  summary.steps = steps;
  summary.planned = steps * static_cast<std::uint64_t>(ranks * settings.compute.micro_batches);
  summary.completed = settings.compute.drops() ? statistics.global.completed : summary.planned;
  summary.samples = summary.completed *
                    static_cast<std::uint64_t>(settings.batch / settings.compute.micro_batches);
  summary.threshold_ms = threshold_ms(budget);
  summary.exchanges = statistics.exchanges;
  summary.exchange_waits = statistics.exchange_waits;
  summary.threshold_clamps = statistics.local.threshold_clamps;
  summary.warning = budget.status().text();
  if (!statistics.estimate) return summary;
  summary.speedup_predicted = 1.0 + statistics.estimate->effective_speedup;
  summary.speedup_modelled = 1.0 + statistics.estimate->predicted_effective_speedup;
  return summary;
}

}  // namespace

Result<RunResult> train(Communicator& communicator, const Corpus& corpus, const Settings& settings,
                        std::uint64_t seed, Progress& progress) {
  const Status same_job = check_same_job(communicator, fingerprint(settings, corpus, seed));
  if (!same_job.ok()) return same_job;

  Gpt model(shape_of(settings, corpus), seed);
  const auto accumulation =
      Accumulation::create(communicator, model, corpus.training(), settings, seed);
  if (!accumulation.ok()) return accumulation.status();
  const auto parallel =
      make_data_parallel(communicator, model.parameters(), model.gradient(), settings);
  if (!parallel.ok()) return parallel.status();

  StepLog log(settings.steps);
  const Status trained = run_steps(settings, **accumulation, **parallel, log, progress);
  if (!trained.ok()) return trained;
  if (settings.mode == Mode::ddp) {
    const Status same = check_same_parameters(communicator, model.parameters());
    if (!same.ok()) return same;
  }

  RunResult result;
  result.transport = communicator.transport();
  result.parameters = model.parameters().size();
  result.step_ms_p50 = log.percentile_ms(0.50);
  result.step_ms_p99 = log.percentile_ms(0.99);
  result.seconds = log.seconds();
  result.compute = summarise(settings, log.steps(), communicator.size(), (*accumulation)->budget());
  const auto score = validation_perplexity(communicator, model, corpus.validation(),
                                           static_cast<std::size_t>(settings.context) + 1);
  if (!score.ok()) return score.status();
  result.perplexity = *score;
  const DataParallel& job = **parallel;
  result.codecs = job.codecs().used();
  const RankFigures figures{job.traffic(), job.noise().mean(), job.drift()};
  const Status summed = sum_over_group(communicator, figures, result);
  if (!summed.ok()) return summed;
  return result;
}

}  // namespace leeway::tools::train
