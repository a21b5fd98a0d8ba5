#include "compute/compute_time.h"

#include <vector>

#include "base/contracts.h"
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
  std::vector<RankTimes> ranks;
};

ComputeTimes::ComputeTimes(std::unique_ptr<State> state) : state_(std::move(state)) {}
ComputeTimes::ComputeTimes(ComputeTimes&&) noexcept = default;
ComputeTimes& ComputeTimes::operator=(ComputeTimes&&) noexcept = default;
ComputeTimes::~ComputeTimes() = default;

Result<ComputeTimes> ComputeTimes::make(const scenario::Scenario& scenario, std::uint64_t seed) {
  auto state = std::make_unique<State>();
  state->ranks.reserve(scenario.ranks());
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    state->ranks.push_back({RandomStream(seed, rank, Purpose::compute), 0, {}});
  }
  for (const scenario::Compute& compute : scenario.compute()) {
    auto model = compute_model(compute);
    if (!model.ok()) return model.status();
    auto ranks = scenario::ranks_of(scenario, compute.ranks());
    if (!ranks.ok()) return ranks.status();
    for (const std::uint32_t rank : *ranks) state->ranks[rank].model = state->models.size();
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

ComputeDraw ComputeTimes::draw(std::uint32_t rank, std::uint32_t round) {
  RankTimes& times = state_->ranks[rank];
  return sim::draw(state_->models[times.model], times.stream, round, times.slow_f32(round));
}

}  // namespace leeway::sim
