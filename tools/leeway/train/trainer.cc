#include "train/trainer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

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

// FNV-1a on whole words: for telling accidents apart, not for security.
constexpr std::uint64_t kHashBasis = 0xcbf29ce484222325ULL;
std::uint64_t hash_step(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x100000001b3ULL;
}

// Everything that must be the same everywhere for the ranks' numbers to mean anything together.
std::uint64_t fingerprint(const Settings& settings, const Corpus& corpus, std::uint64_t seed) {
  std::uint64_t hash = corpus.fingerprint();
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(settings.mode), settings.steps, seed,
        static_cast<std::uint64_t>(settings.batch), static_cast<std::uint64_t>(settings.context),
        static_cast<std::uint64_t>(settings.layers), static_cast<std::uint64_t>(settings.width),
        static_cast<std::uint64_t>(settings.learning_rate * 1e9)}) {
    hash = hash_step(hash, value);
  }
  return hash;
}

// The first rank whose value is not rank 0's; nothing when all are equal. Every rank gets the same
// answer.
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

// What ddp promises: replicated optimizers fed the same bits hold the same bits at the end.
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

Status run_steps(const Settings& settings, Gpt& model, BatchSampler& sampler,
                 DataParallel& parallel, StepLog& log, Progress& progress) {
  for (std::uint64_t step = 0; step < settings.steps; ++step) {
    const auto begin = Clock::now();
    const double loss = model.compute_gradient(sampler.batch(step));
    if (!std::isfinite(loss)) {
      return Status::error(
          StatusCode::kInvalidArgument,
          "training diverged: the loss is not a number at step %llu; lower --learning-rate",
          static_cast<unsigned long long>(step));
    }
    const Status updated =
        parallel.update(learning_rate_at(step, settings.steps, settings.learning_rate));
    if (!updated.ok()) return updated;
    const auto end = Clock::now();
    log.add(loss, milliseconds(end - begin));
    progress.on_step(log.status(parallel.traffic().loss()), end);
  }
  progress.finish();
  return Status();
}

}  // namespace

Result<RunResult> train(Communicator& communicator, const Corpus& corpus, const Settings& settings,
                        std::uint64_t seed, Progress& progress) {
  const Status same_job = check_same_job(communicator, fingerprint(settings, corpus, seed));
  if (!same_job.ok()) return same_job;

  Gpt model(shape_of(settings, corpus), seed);
  const std::size_t window = static_cast<std::size_t>(settings.context) + 1;
  BatchSampler sampler(corpus.training(), window, static_cast<std::size_t>(settings.batch), seed,
                       communicator.rank());
  const auto parallel =
      make_data_parallel(communicator, model.parameters(), model.gradient(), settings);
  if (!parallel.ok()) return parallel.status();

  StepLog log(settings.steps);
  const Status trained = run_steps(settings, model, sampler, **parallel, log, progress);
  if (!trained.ok()) return trained;
  if (settings.mode == Mode::ddp) {
    const Status same = check_same_parameters(communicator, model.parameters());
    if (!same.ok()) return same;
  }

  RunResult result;
  result.parameters = model.parameters().size();
  result.step_ms_p50 = log.percentile_ms(0.50);
  result.step_ms_p99 = log.percentile_ms(0.99);
  result.seconds = log.seconds();
  const auto score = validation_perplexity(communicator, model, corpus.validation(), window);
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
