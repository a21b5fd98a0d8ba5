// Runs a check once for every instruction set that was compiled in and that this processor has.
#pragma once

#include <gtest/gtest.h>

#include <hwy/targets.h>

namespace leeway::codec {

template <typename Check>
void for_each_supported_target(Check check) {
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    check();
    hwy::SetSupportedTargetsForTest(0);
  }
  hwy::GetChosenTarget().DeInit();
}

}  // namespace leeway::codec
