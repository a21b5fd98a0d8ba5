#include "workload/workload.h"

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

}  // namespace

Made make_workload(const scenario::Scenario& scenario, std::uint64_t seed) {
  using Kind = scenario::Workload::KindCase;
  switch (scenario.workload().kind_case()) {
    case Kind::kQuadratic:
      return make_quadratic(scenario, seed);
    case Kind::kLogistic:
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
