// One operation of every rank of a group, which must succeed on all of them before any deadline.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/engine_group.h"

namespace leeway::testing {

// What `make` returns for a rank is submitted there. Fails the test fatally where an operation
// fails or is cut; ask Test::HasFatalFailure() before reading results.
inline void run_round(EngineGroup& group,
                      const std::function<collective::OperationSpec(Rank)>& make) {
  const auto requests = group.submit_all(make);
  ASSERT_TRUE(group.run(requests));
  for (const collective::Request* request : requests) {
    ASSERT_TRUE(request->status.ok()) << request->status.text();
    ASSERT_FALSE(request->report.deadline_cut);
  }
}

}  // namespace leeway::testing
