#include "workload/workload.h"

#include <cmath>

#include "workload/logistic.h"
#include "workload/quadratic.h"
#include "workload/rank_parameters.h"
#include "workload/synthetic.h"

namespace leeway::sim {
namespace {

using Made = Result<std::unique_ptr<Workload>>;

std::size_t elements_of(const scenario::Scenario& scenario) {
  return scenario.operation().bytes() / sizeof(float);
}

Made make_synthetic(const scenario::Scenario& scenario, std::uint64_t seed) {
  const scenario::Workload::Synthetic& synthetic = scenario.workload().synthetic();
  const SyntheticWorkload::Options options{
      .ranks = scenario.ranks(),
      .elements = elements_of(scenario),
      .mean = static_cast<float>(synthetic.mean()),
      .deviation = static_cast<float>(synthetic.deviation()),
      .rank_deviation = static_cast<float>(synthetic.rank_deviation()),
  };
  return Made(std::make_unique<SyntheticWorkload>(options, seed));
}

Made make_quadratic(const scenario::Scenario& scenario, std::uint64_t seed) {
  const scenario::Workload::Quadratic& quadratic = scenario.workload().quadratic();
  const QuadraticWorkload::Options options{
      .ranks = scenario.ranks(),
      .elements = elements_of(scenario),
      .condition = quadratic.condition(),
      .noise = static_cast<float>(quadratic.noise()),
      .center_deviation = static_cast<float>(quadratic.center_deviation()),
      .learning_rate = static_cast<float>(quadratic.learning_rate()),
  };
  const Status fits = check_floats(options.ranks, options.elements, "parameters");
  if (!fits.ok()) return fits;
  return Made(std::make_unique<QuadraticWorkload>(options, seed));
}

Made make_logistic(const scenario::Scenario& scenario, std::uint64_t seed) {
  const scenario::Workload::Logistic& logistic = scenario.workload().logistic();
  const LogisticProblem::Options options{
      .ranks = scenario.ranks(),
      .features = logistic.features(),
      .samples_per_rank = logistic.samples_per_rank(),
      .label_skew = logistic.label_skew(),
      .l2 = logistic.l2(),
  };
  const auto floats = std::uint64_t{options.features} * options.samples_per_rank;
  const Status fits = check_floats(options.ranks, floats, "features of points");
  if (!fits.ok()) return fits;
  return LogisticWorkload::make(options, static_cast<float>(logistic.learning_rate()), seed);
}

}  // namespace

float noise_of_sum(MicroBatches micro_batches) {
  const double variance = static_cast<double>(micro_batches.planned) * micro_batches.completed;
  return static_cast<float>(std::sqrt(variance));
}

void Workload::gradient_sum(std::uint32_t rank, std::uint32_t round, MicroBatches micro_batches,
                            std::span<float> out) {
  gradient(rank, round, out);
  if (micro_batches.completed == 1) return;
  for (float& value : out) value *= static_cast<float>(micro_batches.completed);
}

Made make_workload(const scenario::Scenario& scenario, std::uint64_t seed) {
  using Kind = scenario::Workload::KindCase;
  switch (scenario.workload().kind_case()) {
    case Kind::kQuadratic:
      return make_quadratic(scenario, seed);
    case Kind::kLogistic:
      return make_logistic(scenario, seed);
    case Kind::kGpt:
      return Status::error(StatusCode::kUnsupported,
                           "workload gpt needs a leeway command that was built with libtorch");
    case Kind::kSynthetic:
    case Kind::KIND_NOT_SET:
      break;
  }
  return make_synthetic(scenario, seed);
}

}  // namespace leeway::sim
