// An all_reduce of floats on the virtual network, whose result must be the exact sum.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "support/engine_group.h"

namespace leeway::testing {

class FloatAllReduce {
 public:
  FloatAllReduce(int size, std::size_t count, Delivery delivery = exact())
      : data_(size), delivery_(delivery) {
    for (int rank = 0; rank < size; ++rank) {
      for (std::size_t i = 0; i < count; ++i)
        data_[rank].push_back(static_cast<float>((i * 7 + rank * 13) % 101));
    }
    sum_.assign(count, 0.0f);
    for (const auto& row : data_) {
      for (std::size_t i = 0; i < count; ++i) sum_[i] += row[i];
    }
  }

  collective::Request& submit(EngineGroup& group, Rank rank) {
    collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce};
    spec.input = std::span(data_[rank]);
    spec.output = std::span(data_[rank]);
    spec.options.delivery = delivery_;
    requests_.push_back(&group.submit(rank, spec));
    return *requests_.back();
  }
  void submit_all(EngineGroup& group) {
    for (Rank rank = 0; rank < data_.size(); ++rank) submit(group, rank);
  }
  const std::vector<collective::Request*>& requests() const { return requests_; }
  const CollectiveReport& report(std::size_t i) const { return requests_[i]->report; }
  const std::vector<float>& data(Rank rank) const { return data_[rank]; }

  // Runs until all calls are done. Succeeds if every rank then holds the sum.
  ::testing::AssertionResult finish(EngineGroup& group,
                                    Duration limit = std::chrono::seconds(100)) {
    if (!group.run(requests_, limit)) return ::testing::AssertionFailure() << "not done";
    for (const auto* request : requests_) {
      if (!request->status.ok()) return ::testing::AssertionFailure() << request->status.text();
    }
    return holds_sum();
  }
  // Runs one all_reduce on all ranks, until the engines are idle.
  static ::testing::AssertionResult run(EngineGroup& group, std::size_t count,
                                        Delivery delivery = exact()) {
    FloatAllReduce call(group.size(), count, delivery);
    call.submit_all(group);
    const auto result = call.finish(group, std::chrono::seconds(10));
    return result && !group.settle() ? ::testing::AssertionFailure() << "not settled" : result;
  }
  ::testing::AssertionResult holds_sum() const {
    for (std::size_t rank = 0; rank < data_.size(); ++rank) {
      if (data_[rank] != sum_)
        return ::testing::AssertionFailure() << "rank " << rank << " has not the sum";
    }
    return ::testing::AssertionSuccess();
  }

 private:
  std::vector<std::vector<float>> data_;
  std::vector<float> sum_;
  Delivery delivery_;
  std::vector<collective::Request*> requests_;
};

}  // namespace leeway::testing
