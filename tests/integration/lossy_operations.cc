// Runs every operation that may lose contributions. All ranks contribute the same values, so every
// estimate equals these values, whichever contributions arrive, and each element can be checked.
#include <algorithm>
#include <array>
#include <cmath>

#include "integration/scenario.h"
#include "integration/tally.h"
#include "integration/tensor.h"

namespace leeway::integration {
namespace {

constexpr std::array<DataType, 4> kFloatingTypes = {DataType::f32, DataType::f64, DataType::f16,
                                                    DataType::bf16};

// Relative tolerance of an element. It is above the rounding of 16-bit types (bfloat16: 2^-8). It
// is below the error of an estimate that counts one contribution too many or too few.
constexpr double kRounding = 0.01;

// Returns element i of the contribution, which is the same on all ranks.
int common(std::size_t i, std::uint32_t salt) {
  return 1 + contribution(0, i, salt);
}

class LossyOperations {
 public:
  LossyOperations(Communicator& group, Tally& tally, const Delivery& delivery)
      : group_(group), tally_(tally), delivery_(delivery) {}

  void run_all(DataType type, std::size_t count) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      const CollectiveOptions options{.op = op, .delivery = delivery_};
      all_reduce(type, count, options);
      reduce_scatter(type, count, options);
      reduce(type, count, options);
    }
  }

 private:
  Tensor input(DataType type, std::size_t count) {
    const std::uint32_t salt = ++salt_;
    return Tensor(type, count, [&](std::size_t i) { return common(i, salt); });
  }

  // Returns the number of wrong elements in `result`, the reduction of all ranks' elements from
  // `first` on.
  std::uint64_t wrong(const Tensor& result, std::size_t first, ReduceOp op) const {
    const int times = op == ReduceOp::sum ? group_.size() : 1;
    const Tensor expected(result.type(), result.count(),
                          [&](std::size_t i) { return times * common(first + i, salt_); });
    return result.far(expected, kRounding);
  }

  void all_reduce(DataType type, std::size_t count, const CollectiveOptions& options) {
    Tensor data = input(type, count);
    const auto outcome = group_.all_reduce(data.view(), options);
    tally_.add("lossy all_reduce", outcome, wrong(data, 0, options.op));
  }

  void reduce_scatter(DataType type, std::size_t count, const CollectiveOptions& options) {
    Tensor data = input(type, group_.size() * count);
    Tensor output(type, count);
    const auto outcome = group_.reduce_scatter(data.view(), output.view(), options);
    tally_.add("lossy reduce_scatter", outcome, wrong(output, group_.rank() * count, options.op));
  }

  void reduce(DataType type, std::size_t count, const CollectiveOptions& options) {
    const auto root = static_cast<Rank>(group_.size() - 1);
    Tensor data = input(type, count);
    Tensor output(type, count);
    const auto outcome = group_.reduce(data.view(), output.view(), root, options);
    const bool is_root = group_.rank() == root;
    tally_.add("lossy reduce", outcome, is_root ? wrong(output, 0, options.op) : 0);
  }

  Communicator& group_;
  Tally& tally_;
  Delivery delivery_;
  std::uint32_t salt_ = 0;  // new data for every call
};

// Tests a Replica whose owners write a new value in every step: each element must be a value that
// its owner wrote, and after synchronize() the latest one.
void replicate(Communicator& group, Tally& tally, std::size_t count, int steps) {
  std::vector<float> parameters(count, 0.0f);
  auto replica = Replica::create(group, parameters);
  if (!replica.ok()) return tally.add("Replica", replica.status(), 0);
  const auto outside = [&](int lowest, int highest) {
    return static_cast<std::uint64_t>(std::ranges::count_if(parameters, [&](float value) {
      return !(value >= static_cast<float>(lowest) && value <= static_cast<float>(highest)) ||
             value != std::floor(value);
    }));
  };
  for (int step = 1; step <= steps; ++step) {
    std::ranges::fill((*replica)->owned(), static_cast<float>(step));
    const auto spread = (*replica)->broadcast_parameters();
    tally.add("broadcast_parameters", spread, outside(0, step));
  }
  const auto equal = (*replica)->synchronize();
  tally.add("synchronize", equal, outside(steps, steps));
}

}  // namespace

// Runs every lossy operation. `elements_max`: the largest block, in elements. `types=0`: float32
// only. `steps`: steps of the replica.
Facts lossy_operations(const Arguments& arguments) {
  const auto group = join();
  const auto largest = static_cast<std::size_t>(arguments.number("elements_max", 64 * 1024));
  const Delivery delivery = best_effort(std::chrono::seconds(20));
  Tally tally;
  LossyOperations every(*group, tally, delivery);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{250}, largest})
    every.run_all(DataType::f32, count);
  if (arguments.number("types", 1) != 0) {
    for (const DataType type : kFloatingTypes) every.run_all(type, 1001);
  }
  replicate(*group, tally, largest, static_cast<int>(arguments.number("steps", 5)));
  Facts facts = tally.facts();
  facts["rank"] = group->rank();
  return facts;
}

}  // namespace leeway::integration
