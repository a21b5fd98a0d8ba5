// The right contents of a step's tensors before and after it. Values are small whole numbers. So
// sums and products are exact in every type, and results are compared bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/program.h"
#include "support/typed_tensor.h"

namespace leeway::programs {

// Lengths of one rank's tensors in a collective of `size` ranks.
struct Extent {
  std::size_t input = 0;                  // elements
  std::size_t output = 0;                 // elements; 0 if the rank has none
  std::vector<std::size_t> input_counts;  // by block; empty if all are equal
  std::vector<std::size_t> output_counts;
  std::vector<std::size_t> input_begins;
  std::vector<std::size_t> output_begins;
};
Extent extent_of(const Step& step, int rank, int size);

int factor_of(const Step& step, int rank);

double contribution(const Step& step, int rank, std::size_t index);

testing::TypedTensor input_of(const Step& step, int rank, int size);
// Writes the right output into `before`. Elements that the step does not write keep their values.
void expect(const Step& step, int rank, int size, testing::TypedTensor& before);
testing::TypedTensor message_of(const Step& step, std::size_t index);

// Describes how `got` differs from `wanted`. Empty if they are equal.
std::string difference(const Step& step, const testing::TypedTensor& got,
                       const testing::TypedTensor& wanted);

}  // namespace leeway::programs
