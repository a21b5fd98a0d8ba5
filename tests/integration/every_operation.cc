#include "integration/every_operation.h"

#include <algorithm>

namespace leeway::integration {

int part(ReduceOp op, int ranks, int rank, std::size_t i, std::uint32_t salt) {
  const int value = contribution(rank, i, salt);
  if (op == ReduceOp::prod) return 1 + value % 3;
  return op == ReduceOp::avg ? ranks * value : value;
}

int factor_of(int rank) {
  return 1 + rank % 2;
}

int reduced(ReduceOp op, int ranks, std::size_t i, std::uint32_t salt) {
  const auto brought = [&](int rank) {
    const int value = part(op, ranks, rank, i, salt);
    return op == ReduceOp::premul_sum ? factor_of(rank) * value : value;
  };
  int result = brought(0);
  for (int rank = 1; rank < ranks; ++rank) {
    const int value = brought(rank);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg:
      case ReduceOp::premul_sum:
        result += value;
        break;
      case ReduceOp::prod:
        result *= value;
        break;
      case ReduceOp::min:
        result = std::min(result, value);
        break;
      case ReduceOp::max:
        result = std::max(result, value);
        break;
      case ReduceOp::band:
        result &= value;
        break;
      case ReduceOp::bor:
        result |= value;
        break;
      case ReduceOp::bxor:
        result ^= value;
        break;
    }
  }
  return op == ReduceOp::avg ? result / ranks : result;
}

void EveryOperation::run_all(DataType type, std::size_t count) {
  const auto last = static_cast<Rank>(size() - 1);
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max})
    all_reduce(type, count, op);
  if (is_floating(type)) {
    if (size_of(type) > 1) all_reduce(type, count, ReduceOp::avg);
  } else if (type != DataType::boolean) {
    for (ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) all_reduce(type, count, op);
  }
  if (type != DataType::boolean) all_reduce(type, count, ReduceOp::premul_sum);
  reduce_scatter(type, count);
  all_gather(type, count);
  broadcast(type, count, last);
  reduce(type, count, 0);
  gather(type, count, last);
  scatter(type, count, 0);
  all_to_all(type, count);
  if (size() > 1) ring(type, count);
  tally_.add("barrier", group_.barrier(), 0);
}

void EveryOperation::all_reduce(DataType type, std::size_t count, ReduceOp op) {
  const std::uint32_t salt = ++salt_;
  Tensor data(type, count, [&](std::size_t i) { return part(op, size(), self(), i, salt); });
  const Tensor expected(type, count, [&](std::size_t i) { return reduced(op, size(), i, salt); });
  CollectiveOptions options{.op = op};
  if (op == ReduceOp::premul_sum) options.factor = factor_of(self());
  const auto outcome = group_.all_reduce(data.view(), options);
  tally_.add("all_reduce " + std::string(to_string(op)), outcome, data.wrong(expected));
}

void EveryOperation::reduce_scatter(DataType type, std::size_t count) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, size() * count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, count);
  const Tensor expected(type, count, [&](std::size_t i) {
    return reduced(ReduceOp::sum, size(), self() * count + i, salt);
  });
  const auto outcome = group_.reduce_scatter(input.view(), output.view());
  tally_.add("reduce_scatter", outcome, output.wrong(expected));
}

void EveryOperation::all_gather(DataType type, std::size_t count) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, size() * count);
  const Tensor expected(type, size() * count, [&](std::size_t i) {
    return contribution(static_cast<int>(i / count), i % count, salt);
  });
  const auto outcome = group_.all_gather(input.view(), output.view());
  tally_.add("all_gather", outcome, output.wrong(expected));
}

void EveryOperation::broadcast(DataType type, std::size_t count, Rank root) {
  const std::uint32_t salt = ++salt_;
  Tensor data(type, count, [&](std::size_t i) { return contribution(self(), i, salt); });
  const Tensor expected(type, count, [&](std::size_t i) { return contribution(root, i, salt); });
  const auto outcome = group_.broadcast(data.view(), root);
  tally_.add("broadcast", outcome, data.wrong(expected));
}

void EveryOperation::reduce(DataType type, std::size_t count, Rank root) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, count);
  const Tensor expected(type, count,
                        [&](std::size_t i) { return reduced(ReduceOp::sum, size(), i, salt); });
  const auto outcome = group_.reduce(input.view(), output.view(), root);
  tally_.add("reduce", outcome, self() == root ? output.wrong(expected) : 0);
}

void EveryOperation::gather(DataType type, std::size_t count, Rank root) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, size() * count);
  const Tensor expected(type, size() * count, [&](std::size_t i) {
    return contribution(static_cast<int>(i / count), i % count, salt);
  });
  const auto outcome = group_.gather(input.view(), output.view(), root);
  tally_.add("gather", outcome, self() == root ? output.wrong(expected) : 0);
}

void EveryOperation::scatter(DataType type, std::size_t count, Rank root) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, size() * count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, count);
  const Tensor expected(
      type, count, [&](std::size_t i) { return contribution(root, self() * count + i, salt); });
  const auto outcome = group_.scatter(input.view(), output.view(), root);
  tally_.add("scatter", outcome, output.wrong(expected));
}

void EveryOperation::all_to_all(DataType type, std::size_t count) {
  const std::uint32_t salt = ++salt_;
  Tensor input(type, size() * count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, size() * count);
  const Tensor expected(type, size() * count, [&](std::size_t i) {
    return contribution(static_cast<int>(i / count), self() * count + i % count, salt);
  });
  const auto outcome = group_.all_to_all(input.view(), output.view());
  tally_.add("all_to_all", outcome, output.wrong(expected));
}

void EveryOperation::ring(DataType type, std::size_t count) {
  const std::uint32_t salt = ++salt_;
  const auto next = static_cast<Rank>((self() + 1) % size());
  const auto before = static_cast<Rank>((self() + size() - 1) % size());
  Tensor input(type, count, [&](std::size_t i) { return contribution(self(), i, salt); });
  Tensor output(type, count);
  const Tensor expected(type, count, [&](std::size_t i) { return contribution(before, i, salt); });
  Work sending = group_.send_async(input.view(), next);
  const auto received = group_.recv(output.view(), before);
  tally_.add("recv", received, output.wrong(expected));
  tally_.add("send", sending.wait(), 0);
}

}  // namespace leeway::integration
