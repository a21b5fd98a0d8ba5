#include "run/uneven_plan.h"

#include "engine/random_stream.h"

namespace leeway::sim {

UnevenPlan::UnevenPlan(const scenario::Scenario& scenario, std::uint64_t seed, std::size_t elements)
    : kind_(scenario.operation().kind()),
      uneven_(scenario.operation().uneven()),
      seed_(seed),
      ranks_(scenario.ranks()),
      longest_(elements / scenario.ranks()) {}

std::vector<std::size_t> UnevenPlan::lengths(std::uint32_t round) const {
  std::vector<std::size_t> lengths;
  if (!uneven_) return lengths;
  RandomStream random(seed_, round, Purpose::message);
  const auto draw = [&]() -> std::size_t {  // a quarter of the blocks are empty
    return random.below(4) == 0 ? 0 : random.below(longest_ + 1);
  };
  std::vector<std::size_t> blocks(ranks_);  // one length for each rank, which all ranks know
  for (std::size_t& block : blocks) block = draw();
  for (std::uint32_t from = 0; from < ranks_; ++from) {
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      const bool of_sender = kind_ == scenario::Operation::all_gather;
      const bool own = kind_ == scenario::Operation::all_to_all;
      lengths.push_back(own ? draw() : of_sender ? blocks[from] : blocks[to]);
    }
  }
  return lengths;
}

}  // namespace leeway::sim
