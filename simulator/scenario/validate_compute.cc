// Rules about the ranks' compute times.
#include <string>

#include "scenario/field_limits.h"
#include "scenario/rank_set.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

// Refuses a threshold shorter than a micro-batch. It would drop nearly everything, so it is taken
// for a mistake of units.
Status check_drop_compute(const Compute::DropCompute& compute, const std::string& path,
                          const Places& places) {
  if (compute.has_threshold_ms() && compute.threshold_ms() < compute.micro_batch_ms()) {
    return places.refuse(path + ".threshold_ms", "is " + number_text(compute.threshold_ms()) +
                                                     "; allowed is micro_batch_ms, " +
                                                     number_text(compute.micro_batch_ms()) +
                                                     ", and above");
  }
  if (compute.micro_batches_min() > compute.micro_batches()) {
    return places.refuse(path + ".micro_batches_min",
                         "is " + std::to_string(compute.micro_batches_min()) +
                             "; allowed is 0 to micro_batches, " +
                             std::to_string(compute.micro_batches()));
  }
  if (compute.has_threshold_ms() && compute.has_threshold_auto()) {
    return places.refuse(path + ".threshold_auto", "cannot be combined with threshold_ms");
  }
  return {};
}

// Checks that all ranks take part in an automatic threshold, and adopt it before the run ends.
Status check_threshold_auto(const Scenario& scenario, const Compute& compute,
                            const std::string& path, const Places& places) {
  const auto ranks = ranks_of(scenario, compute.ranks());
  if (scenario.compute_size() != 1 || !ranks.ok() || ranks->size() != scenario.ranks()) {
    return places.refuse(path, "needs one compute entry, of all ranks");
  }
  const Compute::ThresholdAuto& automatic = compute.drop_compute().threshold_auto();
  const std::uint32_t least = automatic.window_rounds() + automatic.adopt_after_rounds();
  if (automatic.every_rounds() != 0 && automatic.every_rounds() < least) {
    return places.refuse(path + ".every_rounds",
                         "is " + std::to_string(automatic.every_rounds()) +
                             "; allowed are 0 and window_rounds and adopt_after_rounds together, " +
                             std::to_string(least) + ", and above");
  }
  const auto first = std::uint64_t{compute.drop_compute().warm_up_rounds()} + least;
  if (first < scenario.rounds()) return {};
  return places.refuse(path, "finds a threshold for round " + std::to_string(first) +
                                 "; allowed is below rounds, which is " +
                                 std::to_string(scenario.rounds()));
}

}  // namespace

Status check_compute(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.compute_size(); ++i) {
    const Compute& compute = scenario.compute(i);
    const std::string path = entry("compute", i);
    const Status chosen = check_selector(scenario, path + ".ranks", compute.ranks(), places);
    if (!chosen.ok()) return chosen;
    if (compute.kind_case() == Compute::KIND_NOT_SET) {
      return places.refuse(path,
                           "has no kind; give constant_ms, lognormal, heavy_tail, periodic, "
                           "drop_compute or trace");
    }
    if (!compute.has_drop_compute()) continue;
    const std::string drop = path + ".drop_compute";
    Status checked = check_drop_compute(compute.drop_compute(), drop, places);
    if (checked.ok() && compute.drop_compute().has_threshold_auto()) {
      checked = check_threshold_auto(scenario, compute, drop + ".threshold_auto", places);
    }
    if (!checked.ok()) return checked;
  }
  return {};
}

}  // namespace leeway::sim::scenario
