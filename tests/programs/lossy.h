// What a lossy reduction may give: the oracle of elements from which contributions are missing.
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
  const testing::TypedTensor& before;  // what the output held
  const testing::TypedTensor& whole;   // without loss
  const CollectiveReport& report;
};

// Empty if each element is what the estimator makes of the contributions of some ranks. Others may
// be missing where the spread is lossy, as many as the report says: they are 0, or as before.
std::string lossy_difference(const LossyResult& result);

}  // namespace leeway::programs
