#include "collective/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

// Integers small enough that every order of summation is exact.
std::vector<std::vector<float>> tensors(int size, std::size_t count) {
  std::vector<std::vector<float>> data(size, std::vector<float>(count));
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < count; ++i)
      data[rank][i] = static_cast<float>((i * 7 + rank * 13) % 101);
  }
  return data;
}

std::vector<float> sum_of(const std::vector<std::vector<float>>& data) {
  std::vector<float> sum(data[0].size(), 0.0f);
  for (const auto& row : data) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  return sum;
}

struct Case {
  int size;
  std::size_t count;
  double loss;
};

class ExactAllReduce : public ::testing::TestWithParam<Case> {};

TEST_P(ExactAllReduce, GivesTheSumOnAllRanks) {
  const Case c = GetParam();
  GroupOptions options{.size = c.size};
  options.faults.loss = c.loss;
  EngineGroup group(options);
  auto data = tensors(c.size, c.count);
  const auto expected = sum_of(data);
  const auto requests = group.submit_all([&](Rank rank) {
    return OperationSpec{.kind = OperationKind::all_reduce,
                         .input = std::span(data[rank]),
                         .output = std::span(data[rank])};
  });
  ASSERT_TRUE(group.run(requests));
  for (int rank = 0; rank < c.size; ++rank) {
    ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
    EXPECT_EQ(data[rank], expected) << "rank " << rank;
    EXPECT_EQ(requests[rank]->report.loss, 0.0);
  }
  EXPECT_TRUE(group.settle());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExactAllReduce,
                         ::testing::Values(Case{1, 100, 0}, Case{2, 0, 0}, Case{2, 1, 0},
                                           Case{2, 1000, 0}, Case{3, 4097, 0}, Case{4, 100000, 0},
                                           Case{4, 100000, 0.1}, Case{4, 100000, 0.4},
                                           Case{7, 12345, 0.2}, Case{64, 5000, 0.1},
                                           Case{65, 5000, 0.1}, Case{4, 10, 0.3}));

}  // namespace
}  // namespace leeway::collective
