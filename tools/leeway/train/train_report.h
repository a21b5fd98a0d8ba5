// The report of `leeway train`: a table for people, JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/corpus.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace leeway::tools::train {

// The lossy run of one seed, and the runs to compare it with, if they were made.
struct SeedOutcome {
  std::uint64_t seed = 0;
  RunResult lossy;
  std::optional<RunResult> twin;  // without loss, without stragglers, and with nothing dropped
  // Same losses and delays as in the lossy run, but nothing is dropped.
  std::optional<RunResult> no_threshold{};
};

// Returns 100 (perplexity / perplexity_twin - 1). A positive value means that loss made the model
// worse.
double change_percent(double perplexity, double perplexity_twin);

// Returns samples a second of `run` divided by those of `without`. 1 means that dropping work saved
// no time.
double speedup(const RunResult& run, const RunResult& without);

// Statistics over seeds. The standard deviation is that of a sample, and 0 for a single seed.
struct Spread {
  double mean = 0;
  double standard_deviation = 0;
  double min = 0;
  double max = 0;
};
Spread spread_of(const std::vector<double>& values);

struct TrainReport {
  Settings settings;
  int ranks = 0;
  std::string corpus;
  double bigram_perplexity = 0;
  std::vector<SeedOutcome> outcomes;  // one for each seed, at least one
};

// Returns the header, which describes the runs; `report` needs no outcomes yet.
std::string format_header(const TrainReport& report, const Corpus& corpus);
std::string format_seed(const SeedOutcome& outcome);
std::string format_table(const TrainReport& report);

// Returns one object. With several seeds its numbers are means over seeds (age_max_seen and
// step_ms_p99: the largest), and `runs` lists the single runs. Fields that compare with a twin are
// null without one.
std::string to_json(const TrainReport& report);

}  // namespace leeway::tools::train
