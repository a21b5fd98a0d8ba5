// Runs one operation on all ranks of a group; it must succeed on all of them before any deadline.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/engine_group.h"

namespace leeway::testing {

// Submits on each rank the operation that `make` returns for it. Fails the test if an operation
// fails or is cut. Ask Test::HasFailure() before reading results.
inline std::vector<collective::Request*> run_round(
    EngineGroup& group, const std::function<collective::OperationSpec(Rank)>& make) {
  auto requests = group.submit_all(make);
  EXPECT_TRUE(group.run(requests));
  for (const collective::Request* request : requests) {
    EXPECT_TRUE(request->done && request->status.ok()) << request->status.text();
    EXPECT_FALSE(request->report.deadline_cut);
  }
  return requests;
}

}  // namespace leeway::testing
