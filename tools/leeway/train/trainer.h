// One training run on a group of ranks: from equal initial parameters to a validation perplexity.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/noise.h"
#include "leeway/communicator.h"
#include "leeway/replica.h"
#include "train/codec_log.h"
#include "train/corpus.h"
#include "train/progress.h"
#include "train/settings.h"

namespace leeway::tools::train {

// Size of a histogram of ages 0, 1, ...; its last bin counts all higher ages.
inline constexpr std::size_t kAgeBins = 9;

// Distances between the replicas: means over ranks and measurements (replica.h, DriftReport).
struct DriftSummary {
  double pair_measured = 0;
  double pair_predicted = 0;      // from the variance and mean of one optimizer step
  double pair_predicted_gap = 0;  // from the gap when exactly one of two received
  double owner_measured = 0;
  double owner_predicted = 0;
  double age_mean = 0;
  std::uint32_t age_max_seen = 0;
  std::uint64_t blocks_refreshed = 0;
  std::array<double, kAgeBins> age_shares{};  // fraction of blocks and steps at each age
};

struct ComputeSummary {
  std::uint64_t steps = 0;
  std::uint64_t planned = 0;  // micro-batches
  std::uint64_t completed = 0;
  std::uint64_t samples = 0;  // windows of the micro-batches that were completed
  // threshold at the end of the run; no value if there was none
  std::optional<double> threshold_ms;
  // Speedups that the search for the automatic threshold predicted: from the measured latencies,
  // and from a normal distribution fitted to them.
  std::optional<double> speedup_predicted;
  std::optional<double> speedup_modelled;
  // Figures of this rank. `exchanges` of counts and latencies were made, and for `exchange_waits`
  // of them a step had to wait. In `threshold_clamps` steps the threshold would have left no
  // micro-batch. `warning` is about clock readings that were wrong.
  std::uint64_t exchanges = 0;
  std::uint64_t exchange_waits = 0;
  std::uint64_t threshold_clamps = 0;
  std::string warning;

  double drop_rate() const;
};

// A run's results. All ranks have the same, except for step times, which are the rank's own.
struct RunResult {
  TransportKind transport = TransportKind::udp;
  std::size_t parameters = 0;
  double perplexity = 0;
  double loss_observed =
      0;  // fraction of the training packets that the network lost, over all ranks
  std::uint64_t bytes_sent = 0;  // sent by all ranks, for training
  std::uint64_t elements_untouched = 0;
  std::uint64_t deadline_cuts = 0;
  double step_ms_p50 = 0;
  double step_ms_p99 = 0;
  double seconds = 0;                 // training alone
  std::optional<DriftSummary> drift;  // replica mode
  // Noise of the reductions over about the last NoiseLog::kMemorySteps; means over ranks. No value
  // if nothing could cause noise.
  std::optional<estimate::NoiseEstimate> noise;
  std::vector<CodecSteps> codecs;  // codecs of the reductions
  ComputeSummary compute;

  // Returns the samples of all ranks divided by this rank's time.
  double samples_per_second() const;
};

// Returns an error if ranks have different corpora or settings, if the loss is not finite any more,
// or if a collective fails.
Result<RunResult> train(Communicator& communicator, const Corpus& corpus, const Settings& settings,
                        std::uint64_t seed, Progress& progress);

}  // namespace leeway::tools::train
