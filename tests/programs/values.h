// What a step's tensors hold before and after it: the oracle. Values are small whole numbers, so
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
  std::size_t output = 0;                 // 0: the rank has none
  std::vector<std::size_t> input_counts;  // of blocks; empty: equal ones
  std::vector<std::size_t> output_counts;
  std::vector<std::size_t> input_begins;
  std::vector<std::size_t> output_begins;
};
Extent extent_of(const Step& step, int rank, int size);

// What this rank's contribution is multiplied by.
int factor_of(const Step& step, int rank);

// What the rank contributes to an element of a reduction.
double contribution(const Step& step, int rank, std::size_t index);

testing::TypedTensor input_of(const Step& step, int rank, int size);
// What the output must hold. Of elements that nobody writes: what `before` holds.
void expect(const Step& step, int rank, int size, testing::TypedTensor& before);
testing::TypedTensor message_of(const Step& step, std::size_t index);

// Empty if `got` is as it should be.
std::string difference(const Step& step, const testing::TypedTensor& got,
                       const testing::TypedTensor& wanted);

}  // namespace leeway::programs
