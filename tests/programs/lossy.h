// The values that a lossy reduction may give when contributions are missing.
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

// Returns an empty text if every element is what the estimator makes of some ranks' contributions,
// else says what is wrong. With a lossy spread half, as many elements may be missing as the report
// says. Missing elements are 0 or unchanged.
std::string lossy_difference(const LossyResult& result);

}  // namespace leeway::programs
