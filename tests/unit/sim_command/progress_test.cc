#include "sim/progress.h"

#include <gtest/gtest.h>

namespace leeway::tools::simulation {
namespace {

TEST(ProgressText, NoEstimateBeforeARunHasFinished) {
  EXPECT_EQ(progress_text({.runs_total = 40, .round = 7, .rounds = 30, .seconds = 5}),
            "0 of 40 runs, round 7 of 30");
}

TEST(ProgressText, TimeLeftIsThatOfTheRunsThatWereMade) {
  EXPECT_EQ(progress_text({.runs_total = 40, .runs_finished = 10, .seconds = 20}),
            "10 of 40 runs, 1 min 0 s left");
  EXPECT_EQ(progress_text({.runs_total = 40, .runs_kept = 10, .runs_finished = 10, .seconds = 20}),
            "20 of 40 runs, 40 s left");
  EXPECT_EQ(progress_text({.runs_total = 4000, .runs_finished = 10, .seconds = 20}),
            "10 of 4000 runs, 2 h 13 min left");
}

TEST(ProgressText, NothingIsLeftAtTheEnd) {
  EXPECT_EQ(progress_text({.runs_total = 2, .runs_finished = 2, .seconds = 20}), "2 of 2 runs");
}

}  // namespace
}  // namespace leeway::tools::simulation
