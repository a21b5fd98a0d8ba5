#include "sim/gpt_workload.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/contracts.h"
#include "train/evaluation.h"
#include "train/sharded_adam.h"

namespace leeway::tools::simulation {
namespace {

constexpr std::size_t kWindowsPerPass = 16;  // bounds the memory of a forward pass

Result<train::Corpus> load_corpus(const sim::scenario::Workload::Gpt& gpt) {
  auto corpus =
      gpt.text().empty() ? train::Corpus::from_bible() : train::Corpus::from_file(gpt.text());
  if (!corpus.ok() && gpt.text().empty()) {
    return Status::error(StatusCode::kUnavailable,
                         "workload.gpt has no text: install the `bible` command (apt-get install "
                         "bible-kjv) or name a file in workload.gpt.text");
  }
  if (!corpus.ok()) return corpus;
  const std::size_t window = std::size_t{gpt.context()} + 1;
  if (std::min(corpus->training().size(), corpus->validation().size()) >= window) return corpus;
  return Status::error(StatusCode::kInvalidArgument,
                       "workload.gpt.context %u is longer than the parts of %s, which have %zu and "
                       "%zu characters",
                       gpt.context(), corpus->name().c_str(), corpus->training().size(),
                       corpus->validation().size());
}

GptWorkload::Options options_of(const sim::scenario::Scenario& scenario, int vocabulary) {
  const sim::scenario::Workload::Gpt& gpt = scenario.workload().gpt();
  return {.ranks = scenario.ranks(),
          .rounds = scenario.rounds(),
          .shape = {.vocabulary = vocabulary,
                    .context = static_cast<int>(gpt.context()),
                    .layers = static_cast<int>(gpt.layers()),
                    .width = static_cast<int>(gpt.width()),
                    .heads = static_cast<int>(gpt.heads())},
          .batch = gpt.batch(),
          .learning_rate = gpt.learning_rate()};
}

}  // namespace

Result<std::unique_ptr<sim::Workload>> make_workload_with_gpt(
    const sim::scenario::Scenario& scenario, std::uint64_t seed) {
  if (!scenario.workload().has_gpt()) return sim::make_workload(scenario, seed);
  auto corpus = load_corpus(scenario.workload().gpt());
  if (!corpus.ok()) return corpus.status();
  const GptWorkload::Options options = options_of(scenario, corpus->vocabulary());
  return std::unique_ptr<sim::Workload>(
      std::make_unique<GptWorkload>(options, std::move(*corpus), seed));
}

GptWorkload::GptWorkload(const Options& options, train::Corpus corpus, std::uint64_t seed)
    : options_(options),
      corpus_(std::move(corpus)),
      model_(options.shape, seed),
      parameters_(options.ranks, model_.parameters().size()),
      training_losses_(options.ranks),
      rounds_done_(options.ranks),
      optimizer_(options.ranks) {
  const std::size_t window = static_cast<std::size_t>(options.shape.context) + 1;
  LEEWAY_ASSERT(std::min(corpus_.training().size(), corpus_.validation().size()) >= window);
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    std::ranges::copy(model_.parameters(), parameters_.of(rank).begin());
    samplers_.emplace_back(corpus_.training(), window, options.batch, seed, static_cast<int>(rank));
  }
}

void GptWorkload::load(std::uint32_t rank) {
  std::ranges::copy(parameters_.of(rank), model_.parameters().begin());
}

void GptWorkload::gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) {
  LEEWAY_ASSERT(out.size() == elements());
  load(rank);
  training_losses_[rank] = model_.compute_gradient(samplers_[rank].batch(round));
  std::ranges::copy(model_.gradient(), out.begin());
}

void GptWorkload::update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
                         std::span<const float> mean, std::span<float> parameters) {
  LEEWAY_ASSERT(mean.size() == parameters.size());
  const double rate = train::learning_rate_at(round, options_.rounds, options_.learning_rate);
  optimizer_.step(rank, offset, mean, parameters, rate);
  rounds_done_[rank] = round + 1;
}

double GptWorkload::nats(int rank, int ranks, std::size_t& windows) {
  const std::size_t window = static_cast<std::size_t>(options_.shape.context) + 1;
  const auto starts = train::validation_starts(corpus_.validation().size(), window, rank, ranks);
  std::vector<std::int64_t> tokens;
  double sum = 0;
  for (std::size_t first = 0; first < starts.size(); first += kWindowsPerPass) {
    const std::size_t count = std::min(kWindowsPerPass, starts.size() - first);
    tokens.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      train::append_window(corpus_.validation(), starts[i], window, tokens);
    }
    sum += model_.mean_loss(tokens) * static_cast<double>(count);
  }
  windows += starts.size();
  return sum;
}

double GptWorkload::loss(std::uint32_t rank) {
  if (rounds_done_[rank] < options_.rounds) return std::numeric_limits<double>::quiet_NaN();
  load(rank);
  std::size_t windows = 0;
  const double sum = nats(0, 1, windows);
  return train::perplexity(sum, static_cast<double>(windows));
}

std::vector<sim::Measure> GptWorkload::measures() {
  std::size_t windows = 0;
  double sum = 0;
  double losses = 0;
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    load(rank);
    sum += nats(static_cast<int>(rank), static_cast<int>(options_.ranks), windows);
    losses += training_losses_[rank];
  }
  return {{"workload.perplexity", train::perplexity(sum, static_cast<double>(windows))},
          {"workload.training_loss", losses / options_.ranks},
          {"workload.bigram_perplexity", train::bigram_perplexity(corpus_)}};
}

}  // namespace leeway::tools::simulation
