#include "train/data_parallel.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "small_runs.h"

namespace leeway::tools::train {
namespace {

// These make several packets per rank, so that each rank owns some.
constexpr std::size_t kElements = 4096;

// Returns every rank's gradient after a step in which rank r contributes `sums[r]` with weight
// `weights[r]`. In replica mode, only the rank's own shard of it is a result.
std::vector<std::vector<float>> updated_gradients(const char* mode, std::vector<float> sums,
                                                  std::vector<double> weights) {
  Arguments arguments = small_job();
  arguments.mode = mode;
  const Settings settings = understood(arguments);
  auto communicators = Communicator::create_inproc(kRanks, communicator_options(settings, 1));
  EXPECT_TRUE(communicators.ok()) << communicators.status().c_str();
  std::vector<std::vector<float>> gradients;
  for (const float sum : sums) gradients.emplace_back(kElements, sum);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> parameters(kElements);
      auto job = make_data_parallel(*(*communicators)[rank], parameters, gradients[rank], settings);
      ASSERT_TRUE(job.ok()) << job.status().c_str();
      EXPECT_TRUE((*job)->update(0.1, weights[rank]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return gradients;
}

class DataParallelUpdate : public testing::TestWithParam<const char*> {};

TEST_P(DataParallelUpdate, DividesTheSumsByTheirWeights) {
  const auto gradients = updated_gradients(GetParam(), {1.0F, 15.0F}, {1, 3});
  EXPECT_EQ(gradients[0].front(), 4.0F);
  EXPECT_EQ(gradients[1].back(), 4.0F);
}

TEST_P(DataParallelUpdate, LeavesOutARankThatCompletedNothing) {
  const auto gradients = updated_gradients(GetParam(), {0.0F, 6.0F}, {0, 2});
  EXPECT_EQ(gradients[0].front(), 3.0F);
  EXPECT_EQ(gradients[1].back(), 3.0F);
}

INSTANTIATE_TEST_SUITE_P(Modes, DataParallelUpdate, testing::Values("replica", "ddp"));

}  // namespace
}  // namespace leeway::tools::train
