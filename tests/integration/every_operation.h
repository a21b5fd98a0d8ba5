// Calls every collective operation, and checks each result bit for bit.
#pragma once

#include <cstdint>

#include "integration/scenario.h"
#include "integration/tally.h"
#include "integration/tensor.h"

namespace leeway::integration {

// Calls operations on a communicator. All ranks must call the same members in the same order.
class EveryOperation {
 public:
  EveryOperation(Communicator& group, Tally& tally) : group_(group), tally_(tally) {}

  // Runs every operation on blocks of `count` elements. A buffer with a block for each rank has
  // size() x count elements.
  void run_all(DataType type, std::size_t count);

  void all_reduce(DataType type, std::size_t count, ReduceOp op);
  void reduce_scatter(DataType type, std::size_t count);
  void all_gather(DataType type, std::size_t count);
  void broadcast(DataType type, std::size_t count, Rank root);
  void reduce(DataType type, std::size_t count, Rank root);
  void gather(DataType type, std::size_t count, Rank root);
  void scatter(DataType type, std::size_t count, Rank root);
  void all_to_all(DataType type, std::size_t count);
  void ring(DataType type,
            std::size_t count);  // sends to the next rank, and receives from the one before

 private:
  int size() const { return group_.size(); }
  int self() const { return group_.rank(); }

  Communicator& group_;
  Tally& tally_;
  std::uint32_t salt_ = 0;  // new data for every call
};

// Returns element i of the right result of a reduction over all ranks.
int reduced(ReduceOp op, int ranks, std::size_t i, std::uint32_t salt);
// Returns element i of one rank's contribution. For products it is so small that the result stays
// exact. For averages the sum over all ranks is a multiple of their number.
int part(ReduceOp op, int ranks, int rank, std::size_t i, std::uint32_t salt);

int factor_of(int rank);

}  // namespace leeway::integration
