#include "support/reference_call.h"

#include <algorithm>
#include <cmath>

namespace leeway::testing {

using collective::OperationKind;
using collective::OperationSpec;

namespace {

std::uint64_t bits(double value) {
  return static_cast<std::uint64_t>(value);
}

// Returns the bitwise operation that has the same result as `op` on booleans, or `op` itself for
// other types.
ReduceOp of_truths(ReduceOp op, DataType dtype) {
  if (dtype != DataType::boolean) return op;
  if (op == ReduceOp::sum || op == ReduceOp::max) return ReduceOp::bor;
  return op == ReduceOp::prod || op == ReduceOp::min ? ReduceOp::band : op;
}

int factor_of(Rank rank) {
  return 1 + rank % 2;
}

}  // namespace

ReferenceCall::ReferenceCall(const CallShape& shape)
    : shape_(shape), inputs_(shape.size), outputs_(shape.size) {
  for (Rank rank = 0; rank < shape.size; ++rank) make_tensors(rank);
}

// Returns a value so small that sums are exact in every type, whatever their order.
double ReferenceCall::contribution(Rank rank, std::size_t i) const {
  const std::size_t mixed = i * 7 + rank * 13 + i / 64;
  if (shape_.dtype == DataType::boolean) return static_cast<double>(mixed % 3 % 2);
  if (shape_.options.op == ReduceOp::prod) return static_cast<double>(1 + mixed % 2);
  // FP8 holds all whole numbers only up to 16 (E4M3) or 8 (E5M2), so values are 0 or 2. Sums are
  // made in float32 and rounded once.
  if (size_of(shape_.dtype) == 1 && is_floating(shape_.dtype))
    return static_cast<double>(mixed % 3 == 0 ? 2 : 0);
  return static_cast<double>(1 + mixed % (shape_.options.op == ReduceOp::premul_sum ? 15 : 29));
}

double ReferenceCall::brought(Rank rank, std::size_t i) const {
  const double value = contribution(rank, i);
  return shape_.options.op == ReduceOp::premul_sum ? factor_of(rank) * value : value;
}

double ReferenceCall::reduced(std::size_t i) const {
  double value = brought(0, i);
  for (Rank rank = 1; rank < shape_.size; ++rank) {
    const double next = brought(rank, i);
    switch (of_truths(shape_.options.op, shape_.dtype)) {
      case ReduceOp::sum:
      case ReduceOp::avg:
      case ReduceOp::premul_sum:
        value += next;
        break;
      case ReduceOp::prod:
        value *= next;
        break;
      case ReduceOp::min:
        value = std::min(value, next);
        break;
      case ReduceOp::max:
        value = std::max(value, next);
        break;
      case ReduceOp::band:
        value = static_cast<double>(bits(value) & bits(next));
        break;
      case ReduceOp::bor:
        value = static_cast<double>(bits(value) | bits(next));
        break;
      case ReduceOp::bxor:
        value = static_cast<double>(bits(value) ^ bits(next));
        break;
    }
  }
  if (shape_.options.op != ReduceOp::avg) return value;
  value /= shape_.size;
  return is_floating(shape_.dtype) ? value : std::trunc(value);
}

std::size_t ReferenceCall::input_count(Rank rank) const {
  switch (shape_.kind) {
    case OperationKind::scatter:
      return rank == shape_.root ? shape_.count * shape_.size : 0;
    case OperationKind::reduce_scatter:
    case OperationKind::all_to_all:
      return shape_.count * shape_.size;
    case OperationKind::barrier:
      return 0;
    default:
      return shape_.count;
  }
}

std::size_t ReferenceCall::output_count(Rank rank) const {
  switch (shape_.kind) {
    case OperationKind::reduce:
      return rank == shape_.root ? shape_.count : 0;
    case OperationKind::gather:
      return rank == shape_.root ? shape_.count * shape_.size : 0;
    case OperationKind::all_gather:
    case OperationKind::all_to_all:
      return shape_.count * shape_.size;
    case OperationKind::barrier:
      return 0;
    default:
      return shape_.count;
  }
}

void ReferenceCall::make_tensors(Rank rank) {
  inputs_[rank] = TypedTensor(shape_.dtype, input_count(rank));
  for (std::size_t i = 0; i < inputs_[rank].count(); ++i)
    inputs_[rank].set(i, contribution(rank, i));
  outputs_[rank] = TypedTensor(shape_.dtype, output_count(rank));
  // Fills outputs with 77, so that an element that no packet writes is not right by chance.
  for (std::size_t i = 0; i < outputs_[rank].count(); ++i) outputs_[rank].set(i, 77);
  if (shape_.kind == OperationKind::broadcast) outputs_[rank] = inputs_[rank];
}

std::vector<OperationSpec> ReferenceCall::specs(Rank rank) {
  const auto size = static_cast<Rank>(shape_.size);
  OperationSpec spec{.kind = shape_.kind, .peer = shape_.root, .options = shape_.options};
  spec.input = inputs_[rank].view();
  spec.output = outputs_[rank].view();
  if (shape_.kind == OperationKind::send || shape_.kind == OperationKind::recv) {
    OperationSpec send{.kind = OperationKind::send, .input = spec.input, .options = shape_.options};
    send.peer = static_cast<Rank>((rank + 1) % size);
    OperationSpec recv{
        .kind = OperationKind::recv, .output = spec.output, .options = shape_.options};
    recv.peer = static_cast<Rank>((rank + size - 1) % size);
    return {send, recv};
  }
  if (shape_.options.op == ReduceOp::premul_sum) spec.options.factor = factor_of(rank);
  if (shape_.kind == OperationKind::broadcast) spec.input = outputs_[rank].view();
  if (!shape_.in_place) return {spec};
  switch (shape_.kind) {
    case OperationKind::all_reduce:
      outputs_[rank] = inputs_[rank];
      spec.input = spec.output = outputs_[rank].view();
      break;
    case OperationKind::reduce:
      if (rank != shape_.root) break;
      outputs_[rank] = inputs_[rank];
      spec.input = spec.output = outputs_[rank].view();
      break;
    case OperationKind::all_gather:
    case OperationKind::gather: {
      if (outputs_[rank].count() == 0) break;
      for (std::size_t i = 0; i < shape_.count; ++i)
        outputs_[rank].set(rank * shape_.count + i, contribution(rank, i));
      spec.input = outputs_[rank].view(rank * shape_.count, shape_.count);
      break;
    }
    default:
      break;
  }
  return {spec};
}

::testing::AssertionResult ReferenceCall::run(EngineGroup& group) {
  for (Rank rank = 0; rank < shape_.size; ++rank) {
    for (const OperationSpec& spec : specs(rank)) requests_.push_back(&group.submit(rank, spec));
  }
  if (!group.run(requests_)) return ::testing::AssertionFailure() << "not done";
  for (const collective::Request* request : requests_) {
    if (!request->status.ok()) return ::testing::AssertionFailure() << request->status.text();
  }
  return ::testing::AssertionSuccess();
}

double ReferenceCall::expected(Rank rank, std::size_t i) const {
  const std::size_t block = i / std::max<std::size_t>(shape_.count, 1);
  const std::size_t inside = i - block * shape_.count;
  switch (shape_.kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce:
      return reduced(i);
    case OperationKind::reduce_scatter:
      return reduced(rank * shape_.count + i);
    case OperationKind::broadcast:
      return contribution(shape_.root, i);
    case OperationKind::all_gather:
    case OperationKind::gather:
      return contribution(static_cast<Rank>(block), inside);
    case OperationKind::scatter:
      return contribution(shape_.root, rank * shape_.count + i);
    case OperationKind::all_to_all:
      return contribution(static_cast<Rank>(block), rank * shape_.count + inside);
    case OperationKind::send:
    case OperationKind::recv:
      return contribution(static_cast<Rank>((rank + shape_.size - 1) % shape_.size), i);
    default:
      return 0.0;
  }
}

double ReferenceCall::tolerance(double value) const {
  const bool power_of_two = (shape_.size & (shape_.size - 1)) == 0;
  if (shape_.options.op != ReduceOp::avg || !is_floating(shape_.dtype) || power_of_two) return 0.0;
  switch (shape_.dtype) {
    case DataType::f64:
      return 4 * 0x1p-53 * value;
    case DataType::f32:
      return 4 * 0x1p-24 * value;
    case DataType::f16:
      return 4 * 0x1p-11 * value;
    case DataType::f8e4m3:
      return 0x1p-4 * value;
    case DataType::f8e5m2:
      return 0x1p-3 * value;
    default:
      return 4 * 0x1p-8 * value;
  }
}

::testing::AssertionResult ReferenceCall::check() const {
  for (Rank rank = 0; rank < shape_.size; ++rank) {
    for (std::size_t i = 0; i < outputs_[rank].count(); ++i) {
      const double want = expected(rank, i);
      const double got = outputs_[rank].get(i);
      if (std::abs(got - want) <= tolerance(want)) continue;
      return ::testing::AssertionFailure()
             << "rank " << rank << " element " << i << ": " << got << ", not " << want;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace leeway::testing
