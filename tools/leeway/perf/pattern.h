// Test data whose reduction is known exactly: integers that depend on rank and position. They are
// so small that no partial sum is rounded, in any order of summation and any element type. Codecs
// of 16 bits or more do not round them either. Narrower codecs round nearly all of them
// (exactness.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "leeway/options.h"
#include "leeway/types.h"
#include "perf/operation.h"

namespace leeway::tools::perf {

class Pattern {
 public:
  // The size of the data is limited by the reduction and the codecs of `options`.
  Pattern(const CollectiveOptions& options, DataType type, int ranks);

  static int factor_of(int rank);

  double contribution(int rank, std::size_t index) const;
  double reduced(std::size_t index) const;  // reduction of all ranks' contributions

 private:
  double keyed_integer(int rank, std::size_t index) const;

  ReduceOp op_;
  int ranks_;
  // Number of ranks whose contributions are not 0. It is less than all if the type is too narrow
  // for a sum over all ranks; the ranks from this number on then contribute 0.
  int contributors_ = 1;
  std::int64_t low_ = 0;  // contributions are uniform over low_ .. low_ + span_ - 1 ...
  std::int64_t span_ = 1;
  double scale_ = 1;  // ... times this
};

// fill_input() fills this rank's input, and fill_expected() the output that an exact operation must
// give. `count` is Layout::count.
void fill_input(const Pattern& pattern, int rank, TensorView input);
// Returns false if the operation does not touch this rank's output.
bool fill_expected(const Pattern& pattern, Operation operation, int rank, int ranks, int root,
                   std::size_t count, TensorView expected);

struct Comparison {
  std::uint64_t wrong = 0;   // elements whose bits differ
  double error_squares = 0;  // sum of (output - expected)^2
  double truth_squares = 0;  // sum of expected^2
};
Comparison compare(ConstTensorView output, ConstTensorView expected);

}  // namespace leeway::tools::perf
