// Values that a lossy reduction may give: the oracle of elements that lack contributions.
#pragma once

#include <string>

#include "leeway/report.h"
#include "programs/program.h"
#include "support/typed_tensor.h"

namespace leeway::programs {

struct LossyResult {
  const Step& step;
  int rank = 0;
  int size = 1;
  const testing::TypedTensor& got;
  const testing::TypedTensor& before;  // content of the output before the call
  const testing::TypedTensor& whole;   // result without loss
  const CollectiveReport& report;
};

// Returns an empty text if each element is what the estimator makes of some ranks' contributions.
// With a lossy spread, as many elements may be missing as the report says; these are 0, or as
// before.
std::string lossy_difference(const LossyResult& result);

}  // namespace leeway::programs
