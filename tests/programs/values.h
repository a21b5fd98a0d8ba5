// The expected contents of a step's tensors before and after it. Values are small whole numbers, so
// that every sum and product of them is exact in every type, and results are compared by bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/program.h"
#include "support/typed_tensor.h"

namespace leeway::programs {

// The tensors of one rank's part in a collective of `size` ranks.
struct Extent {
  std::size_t input = 0;                  // elements
  std::size_t output = 0;                 // elements; 0 if the rank has none
  std::vector<std::size_t> input_counts;  // by block; empty if all are equal
  std::vector<std::size_t> output_counts;
  std::vector<std::size_t> input_begins;
  std::vector<std::size_t> output_begins;
};
Extent extent_of(const Step& step, int rank, int size);

// Factor by which this rank's contribution is multiplied.
int factor_of(const Step& step, int rank);

// This rank's contribution to an element of a reduction.
double contribution(const Step& step, int rank, std::size_t index);

testing::TypedTensor input_of(const Step& step, int rank, int size);
// Fills in the right output. Elements that the step does not write keep the values in `before`.
void expect(const Step& step, int rank, int size, testing::TypedTensor& before);
testing::TypedTensor message_of(const Step& step, std::size_t index);

// Describes how `got` differs from `wanted`. Empty if it does not.
std::string difference(const Step& step, const testing::TypedTensor& got,
                       const testing::TypedTensor& wanted);

}  // namespace leeway::programs
