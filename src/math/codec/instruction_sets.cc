#include "codec/instruction_sets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace leeway::codec {

// Highway gives better sets lower bits, so the list has the best first.
std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    sets.push_back({hwy::TargetName(target), target});
  }
  return sets;
}

// DeInit() drops the choice, so the next call of a kernel asks SupportedTargets() again.
RunOn::RunOn(const InstructionSet& set) {
  hwy::SetSupportedTargetsForTest(set.id);
  hwy::GetChosenTarget().DeInit();
}

RunOn::~RunOn() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace leeway::codec
