// One collective call on all ranks of a group, and the right result on every rank, computed in the
// simplest way.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "collective/operation_spec.h"
#include "support/engine_group.h"
#include "support/typed_tensor.h"

namespace leeway::testing {

struct CallShape {
  collective::OperationKind kind = collective::OperationKind::all_reduce;
  DataType dtype = DataType::f32;
  int size = 4;
  // Number of elements of one block: of a rank's contribution, or of the data that one rank sends
  // another.
  std::size_t count = 1000;
  Rank root = 0;
  bool in_place = false;  // in place, if the operation allows it
  CollectiveOptions options;
};

class ReferenceCall {
 public:
  explicit ReferenceCall(const CallShape& shape);

  // Returns the operations of `rank`. For messages these are two: each rank sends to the next one
  // in a circle, and receives from the one before.
  std::vector<collective::OperationSpec> specs(Rank rank);
  // Runs the operations of all ranks. Fails unless all succeed in time.
  ::testing::AssertionResult run(EngineGroup& group);

  // Compares every rank's result with the right one. Both must be equal, with one exception:
  // averages of floats over a number of ranks that is no power of two may be off by 4 units in the
  // last place.
  ::testing::AssertionResult check() const;

  const std::vector<collective::Request*>& requests() const { return requests_; }
  const TypedTensor& output(Rank rank) const { return outputs_[rank]; }
  double expected(Rank rank, std::size_t i) const;

 private:
  double contribution(Rank rank, std::size_t i) const;
  double brought(Rank rank, std::size_t i) const;
  double reduced(std::size_t i) const;
  double tolerance(double value) const;
  std::size_t input_count(Rank rank) const;
  std::size_t output_count(Rank rank) const;
  void make_tensors(Rank rank);

  CallShape shape_;
  std::vector<TypedTensor> inputs_;
  std::vector<TypedTensor> outputs_;
  std::vector<collective::Request*> requests_;
};

}  // namespace leeway::testing
