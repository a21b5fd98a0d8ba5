// leeway train: trains a small language model over lossy links, and again without loss ("the
// twin").
//
// The parent checks the arguments before it starts processes. For each seed, the ranks make the
// lossy run and the twin, each on a communicator of its own. Rank 0 reports.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "commands.h"
#include "exit_code.h"
#include "farewell.h"
#include "launch.h"
#include "leeway/communicator.h"
#include "standard_output.h"
#include "text_file.h"
#include "train/corpus.h"
#include "train/model.h"
#include "train/progress.h"
#include "train/settings.h"
#include "train/train_report.h"
#include "train/trainer.h"

namespace leeway::tools {
namespace {

using namespace train;  // NOLINT(google-build-using-namespace): this file is that namespace's
                        // command line

void add_codec_options(CLI::App& command, Arguments& a) {
  command
      .add_option("--codec", a.codec,
                  "How gradients travel: native, bf16, nvfp4, nvfp4:nearest, mxfp4:floor:rotate, "
                  "luq:draws=2, sparse:1/2, automatic, ...; `leeway codec list` shows all")
      ->capture_default_str();
  command.add_option("--parameter-codec", a.parameter_codec,
                     "Replica mode: how parameters travel (default: native)");
  command.add_option("--spread-codec", a.spread_codec,
                     "Ddp mode: how the averaged gradient travels (default: as --codec)");
  command.add_flag("--error-feedback", a.error_feedback,
                   "Add what encoding left out of a gradient to the next one");
}

void add_network_options(CLI::App& command, Arguments& a) {
  command.add_option("--ranks", a.ranks,
                     "Local processes to start (default 4); not needed under a launcher");
  command
      .add_option("--mode", a.mode, "replica: both halves lossy; ddp: lossy reduce, exact spread")
      ->capture_default_str();
  command.add_option("--loss", a.loss,
                     "Fraction of datagrams to lose (default: LEEWAY_FAULT's, else 0.1)");
  command.add_option("--burst", a.burst,
                     "Mean length of loss bursts in packets (default 1: independent losses)");
  add_codec_options(command, a);
  command.add_option("--estimator", a.estimator, "How lossy averages are formed")
      ->capture_default_str();
  command.add_option("--delivery", a.delivery, "best_effort, bounded:LOSS or exact")
      ->capture_default_str();
  command.add_option("--deadline-ms", a.deadline_ms, "Deadline of each operation")
      ->capture_default_str();
  command.add_option("--age-max", a.age_max, "Steps a parameter may be stale, 1 .. 255; 0: no cap")
      ->capture_default_str();
  command
      .add_option("--datagram-bytes", a.datagram_bytes, "Largest datagram; 0: from the path MTU")
      ->capture_default_str();
}

void add_compute_options(CLI::App& command, ComputeArguments& a) {
  command.add_option(
      "--micro-batches", a.micro_batches,
      "Pieces that a rank cuts a step's batch into (default: 1; 8 with a straggler or "
      "a threshold)");
  command
      .add_option("--straggler", a.straggler,
                  "Delay of every micro-batch: none, constant:MS, lognormal:MEDIAN_MS[:SIGMA], "
                  "paper:MS[:FACTOR]; ,slow:RANK:FACTOR makes one rank's longer")
      ->capture_default_str();
  command
      .add_option("--compute-threshold", a.threshold,
                  "Time after which a rank stops computing and joins the reduction with what it "
                  "has: none, auto or seconds")
      ->capture_default_str();
  command.add_option("--compensation", a.compensation,
                     "For dropped micro-batches: extra_steps up to the same number of samples "
                     "(default), requeue: the same, reading the dropped ones again, or none");
  command.add_option("--normalisation", a.normalisation,
                     "Divide gradients by the micro-batches that were completed: realised "
                     "(default), or by those that were planned: maximum");
  command.add_flag("--baseline,!--no-baseline", a.baseline,
                   "With a threshold: also run without it and report the speed-up (default: yes)");
}

void add_training_options(CLI::App& command, Arguments& a) {
  command.add_option("--steps", a.steps, "Optimizer steps")->capture_default_str();
  command.add_option("--seed", a.seed, "Of initial values, batches and losses")
      ->capture_default_str();
  command
      .add_option("--repeat", a.repeat,
                  "Runs with seeds SEED, SEED + 1, ...; mean and spread are reported")
      ->capture_default_str();
  command.add_flag("--twin,!--no-twin", a.twin,
                   "Also run loss-free in float32 and report the change (default: yes)");
  command.add_option("--corpus", a.corpus,
                     "Text to learn (default: what Debian's bible-kjv prints)");
  command.add_option("--batch", a.batch, "Windows a rank and step")->capture_default_str();
  command.add_option("--context", a.context, "Characters the model sees")->capture_default_str();
  command.add_option("--layers", a.layers, "Transformer layers")->capture_default_str();
  command.add_option("--width", a.width, "Width of a layer, a multiple of 16")
      ->capture_default_str();
  command.add_option("--learning-rate", a.learning_rate, "Peak of the schedule")
      ->capture_default_str();
  command.add_option("--json", a.json_path,
                     "Also write the result to this file (- for standard output)");
}

Result<Corpus> load_corpus(const Settings& settings) {
  auto corpus = settings.corpus.empty() ? Corpus::from_bible() : Corpus::from_file(settings.corpus);
  if (!corpus.ok()) return corpus;
  const auto window = static_cast<std::size_t>(settings.context) + 1;
  if (corpus->training().size() < window || corpus->validation().size() < window) {
    return Status::error(StatusCode::kInvalidArgument,
                         "--context %d is longer than the validation part of %s, %zu characters",
                         settings.context, corpus->name().c_str(), corpus->validation().size());
  }
  return corpus;
}

// Makes one run on a communicator of its own, so that losses depend on the run's seed alone, and
// counters count this run alone.
Result<RunResult> run_once(const Settings& settings, const Corpus& corpus, std::uint64_t seed,
                           const char* name, Farewell& farewell) {
  const auto communicator = farewell.create(communicator_options(settings, seed));
  if (!communicator.ok()) return communicator.status();
  const bool shows = (*communicator)->rank() == 0;
  const std::string label = std::string(name) + ", seed " + std::to_string(seed);
  Progress progress(shows ? stderr : nullptr, label, Progress::is_terminal(stderr));
  return train::train(**communicator, corpus, settings, seed, progress);
}

Result<SeedOutcome> run_seed(const Settings& settings, const Corpus& corpus, std::uint64_t seed,
                             Farewell& farewell) {
  SeedOutcome outcome{.seed = seed};
  auto lossy = run_once(settings, corpus, seed, "lossy run", farewell);
  if (!lossy.ok()) return lossy.status();
  outcome.lossy = *lossy;
  if (settings.compute.baseline) {
    auto whole = run_once(without_threshold(settings), corpus, seed, "no threshold", farewell);
    if (!whole.ok()) return whole.status();
    outcome.no_threshold = *whole;
  }
  if (!settings.twin) return outcome;
  auto twin = run_once(loss_free_twin(settings), corpus, seed, "loss-free twin", farewell);
  if (!twin.ok()) return twin.status();
  outcome.twin = *twin;
  return outcome;
}

Status publish(const TrainReport& report) {
  print(format_table(report));
  if (report.settings.json_path.empty()) return Status();
  return write_text(report.settings.json_path, to_json(report));
}

Status run_rank(const Settings& settings, const Corpus& corpus, Farewell& farewell) {
  use_one_compute_thread();
  TrainReport report;
  report.settings = settings;
  report.ranks = settings.communicator.world_size.value_or(1);
  report.corpus = corpus.name();
  report.bigram_perplexity = bigram_perplexity(corpus);
  const bool reports = settings.communicator.rank.value_or(0) == 0;
  if (reports) print(format_header(report, corpus));
  for (int i = 0; i < settings.repeat; ++i) {
    auto outcome =
        run_seed(settings, corpus, settings.seed + static_cast<std::uint64_t>(i), farewell);
    if (!outcome.ok()) return outcome.status();
    report.outcomes.push_back(*outcome);
    if (reports && settings.repeat > 1) print(format_seed(*outcome));
  }
  return reports ? publish(report) : Status();
}

int run(Arguments arguments) {
  const auto environment = Options::from_environment();
  if (!environment.ok()) return complain(environment.status());
  if (arguments.ranks == 0 && !environment->world_size) arguments.ranks = kRanksDefault;
  const auto settings = understand(arguments, *environment);
  if (!settings.ok()) return complain(settings.status());
  if (const Status status = check_writable(settings->json_path); !status.ok())
    return complain(status);
  const auto corpus = load_corpus(*settings);
  if (!corpus.ok()) return complain(corpus.status());

  const auto launched = launch_local_ranks(arguments.ranks);
  if (!launched.ok()) return complain(launched.status());
  if (!launched->is_worker) return launched->exit_code;
  Farewell farewell;
  const Status status = run_rank(*settings, *corpus, farewell);
  if (farewell.exit_code() != 0) {
    std::fprintf(stderr, "leeway: rank %d was interrupted, and has told the others\n",
                 settings->communicator.rank.value_or(0));
    return farewell.exit_code();
  }
  return status.ok() ? 0 : complain(status);
}

}  // namespace

void register_train(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "train", "Train a small language model over lossy links, beside its loss-free twin");
  auto arguments = std::make_shared<Arguments>();
  add_network_options(*command, *arguments);
  add_training_options(*command, *arguments);
  add_compute_options(*command, arguments->compute);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace leeway::tools
