#include "compute/compute_time.h"

#include <algorithm>
#include <vector>

#include "base/contracts.h"
#include "compute/budgeted_compute.h"
#include "compute/compute_model.h"
#include "engine/fixed_point.h"
#include "engine/random_stream.h"
#include "scenario/rank_set.h"

namespace leeway::sim {
namespace {

struct SlowSpell {
  std::uint32_t from_round = 0;
  std::uint32_t to_round = 0;  // the last one
  std::uint64_t factor_f32 = kOneF32;
};

struct RankTimes {
  RandomStream stream;
  std::size_t model = 0;
  BudgetedCompute* budgeted = nullptr;  // instead of the model
  std::vector<SlowSpell> spells;

  std::uint64_t slow_f32(std::uint32_t round) const {
    for (auto spell = spells.rbegin(); spell != spells.rend(); ++spell) {
      if (round >= spell->from_round && round <= spell->to_round) return spell->factor_f32;
    }
    return kOneF32;
  }
};

}  // namespace

struct ComputeTimes::State {
  std::vector<ComputeModel> models{ComputeModel(ConstantTime{})};  // the first: no time passes
  std::vector<std::unique_ptr<BudgetedCompute>> budgeted;
  std::vector<RankTimes> ranks;
  std::uint32_t micro_batches_max = 1;  // most micro-batches that a rank plans
};

ComputeTimes::ComputeTimes(std::unique_ptr<State> state) : state_(std::move(state)) {}
ComputeTimes::ComputeTimes(ComputeTimes&&) noexcept = default;
ComputeTimes& ComputeTimes::operator=(ComputeTimes&&) noexcept = default;
ComputeTimes::~ComputeTimes() = default;

Result<ComputeTimes> ComputeTimes::make(const scenario::Scenario& scenario, std::uint64_t seed) {
  auto state = std::make_unique<State>();
  state->ranks.reserve(scenario.ranks());
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    state->ranks.push_back({RandomStream(seed, rank, Purpose::compute), 0, nullptr, {}});
  }
  for (const scenario::Compute& compute : scenario.compute()) {
    auto ranks = scenario::ranks_of(scenario, compute.ranks());
    if (!ranks.ok()) return ranks.status();
    BudgetedCompute* budgeted = nullptr;
    if (compute.has_drop_compute()) {
      const auto& drop = compute.drop_compute();
      state->budgeted.push_back(std::make_unique<BudgetedCompute>(drop, scenario.ranks()));
      budgeted = state->budgeted.back().get();
      state->micro_batches_max = std::max(state->micro_batches_max, drop.micro_batches());
    }
    auto model = compute_model(compute);
    if (!model.ok()) return model.status();
    for (const std::uint32_t rank : *ranks) {
      state->ranks[rank].model = state->models.size();
      state->ranks[rank].budgeted = budgeted;
    }
    state->models.push_back(std::move(*model));
  }
  for (const scenario::Slow& slow : scenario.slow()) {
    LEEWAY_ASSERT(slow.rank() < scenario.ranks());
    state->ranks[slow.rank()].spells.push_back({slow.from_round(),
                                                slow.has_to_round() ? slow.to_round() : UINT32_MAX,
                                                to_f32(slow.factor())});
  }
  return ComputeTimes(std::move(state));
}

ComputeDraw ComputeTimes::draw(Instant now, std::uint32_t rank, std::uint32_t round) {
  RankTimes& times = state_->ranks[rank];
  const std::uint64_t slow_f32 = times.slow_f32(round);
  if (times.budgeted != nullptr) {
    return times.budgeted->draw(now, rank, round, times.stream, slow_f32);
  }
  const std::int64_t ns = sim::draw(state_->models[times.model], times.stream, round, slow_f32);
  const std::uint32_t all = state_->micro_batches_max;
  return {ns, ns, {all, all}, static_cast<double>(all), 0};
}

const budget::ThresholdChoice* ComputeTimes::choice() const {
  for (const auto& budgeted : state_->budgeted) {
    if (budgeted->choice() != nullptr) return budgeted->choice();
  }
  return nullptr;
}

}  // namespace leeway::sim
