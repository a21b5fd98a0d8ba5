#include "programs/values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>

namespace leeway::programs {
namespace {

using testing::TypedTensor;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
  value = (value ^ value >> 27) * 0x94D049BB133111EBu;
  return value ^ value >> 31;
}

std::uint64_t hash(const Step& step, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mixed(step.salt + 0x9E3779B97F4A7C15u * (a + 977 * b + 92821 * c + 1));
}

// Returns a number that all values of the step are below. It is so small that a sum over kRanksMax
// ranks is exact.
unsigned modulus_of(const Step& step) {
  if (step.type == DataType::boolean) return 2;
  const bool small = step.type == DataType::f8e4m3 || step.type == DataType::f8e5m2;
  if (!is_reduction(step.kind)) return small ? 5 : 101;
  if (small) return 2;
  return step.type == DataType::i8 || step.type == DataType::u8 ? 8 : 17;
}

double value_of(const Step& step, int rank, std::size_t index) {
  const std::uint64_t drawn = hash(step, static_cast<std::uint64_t>(rank), index, 0) >> 20;
  if (is_reduction(step.kind) && step.op == ReduceOp::prod && step.type != DataType::boolean)
    return 1.0 + static_cast<double>(drawn % 2);  // at most 2^6 with kRanksMax - 2 ranks
  // Values are not 0, so that a 0 in a lossy result means that contributions are missing.
  if (step.is_lossy()) return 1.0 + static_cast<double>(drawn % modulus_of(step));
  return static_cast<double>(drawn % modulus_of(step));
}

std::size_t block(const Step& step, std::uint64_t from, std::uint64_t to) {
  return step.uneven ? hash(step, from, to, 1) % (step.count + 1) : step.count;
}

std::vector<std::size_t> blocks(int size, const std::function<std::size_t(std::uint64_t)>& count) {
  std::vector<std::size_t> counts;
  for (int i = 0; i < size; ++i) counts.push_back(count(static_cast<std::uint64_t>(i)));
  return counts;
}

// Sets `begins` to where blocks of these lengths begin. Returns their total length, with gaps.
std::size_t lay_out(const Step& step, const std::vector<std::size_t>& counts,
                    std::vector<std::size_t>& begins) {
  std::size_t at = 0;
  begins.clear();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (step.displaced) at += hash(step, i, 0, 2) % 3;
    begins.push_back(at);
    at += counts[i];
  }
  return at;
}

double reduced(const Step& step, std::span<const double> values) {
  const auto fold = [&](auto&& join) {
    double all = values[0];
    for (const double value : values.subspan(1)) all = join(all, value);
    return all;
  };
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value); };
  const bool boolean = step.type == DataType::boolean;
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += values[i] * (step.op == ReduceOp::premul_sum ? factor_of(step, static_cast<int>(i)) : 1);
  const auto n = static_cast<double>(values.size());
  switch (step.op) {
    case ReduceOp::sum:
    case ReduceOp::premul_sum:
      return boolean ? std::min(sum, 1.0) : sum;
    case ReduceOp::avg:
      return is_floating(step.type) ? sum / n : std::floor(sum / n);
    case ReduceOp::prod:
      return fold([](double a, double b) { return a * b; });
    case ReduceOp::min:
      return fold([](double a, double b) { return std::min(a, b); });
    case ReduceOp::max:
      return fold([](double a, double b) { return std::max(a, b); });
    case ReduceOp::band:
      return fold([&](double a, double b) { return static_cast<double>(whole(a) & whole(b)); });
    case ReduceOp::bor:
      return fold([&](double a, double b) { return static_cast<double>(whole(a) | whole(b)); });
    case ReduceOp::bxor:
      return fold([&](double a, double b) { return static_cast<double>(whole(a) ^ whole(b)); });
  }
  return 0.0;
}

double reduced_at(const Step& step, int size, std::size_t index) {
  std::array<double, kRanksMax> values;
  for (int rank = 0; rank < size; ++rank)
    values[static_cast<std::size_t>(rank)] = value_of(step, rank, index);
  return reduced(step, std::span(values).first(static_cast<std::size_t>(size)));
}

}  // namespace

int factor_of(const Step& step, int rank) {
  const bool small = step.type == DataType::f8e4m3 || step.type == DataType::f8e5m2;
  return step.op != ReduceOp::premul_sum || small ? 1
                                                  : 1 + (rank + static_cast<int>(step.salt)) % 2;
}

double contribution(const Step& step, int rank, std::size_t index) {
  return value_of(step, rank, index);
}

Extent extent_of(const Step& step, int rank, int size) {
  Extent extent;
  const auto self = static_cast<std::uint64_t>(rank);
  const std::size_t all = step.count * static_cast<std::size_t>(size);
  switch (step.kind) {
    case Kind::all_reduce:
    case Kind::broadcast:
      extent.input = extent.output = step.count;
      break;
    case Kind::reduce:
      extent.input = step.count;
      extent.output = rank == step.root ? step.count : 0;
      break;
    case Kind::reduce_scatter:
      extent.input_counts = blocks(size, [&](std::uint64_t i) { return block(step, i, 0); });
      extent.input = lay_out(step, extent.input_counts, extent.input_begins);
      extent.output = extent.input_counts[self];
      break;
    case Kind::all_gather:
      extent.output_counts = blocks(size, [&](std::uint64_t i) { return block(step, i, 0); });
      extent.output = lay_out(step, extent.output_counts, extent.output_begins);
      extent.input = extent.output_counts[self];
      break;
    case Kind::gather:
      extent.input = step.count;
      extent.output = rank == step.root ? all : 0;
      break;
    case Kind::scatter:
      extent.input = rank == step.root ? all : 0;
      extent.output = step.count;
      break;
    case Kind::all_to_all:
      extent.input_counts = blocks(size, [&](std::uint64_t i) { return block(step, self, i); });
      if (step.longer) ++extent.input_counts[static_cast<std::size_t>(longer_to(rank))];
      extent.output_counts = blocks(size, [&](std::uint64_t i) { return block(step, i, self); });
      extent.input = lay_out(step, extent.input_counts, extent.input_begins);
      extent.output = lay_out(step, extent.output_counts, extent.output_begins);
      break;
    default:
      break;
  }
  return extent;
}

TypedTensor input_of(const Step& step, int rank, int size) {
  const Extent extent = extent_of(step, rank, size);
  TypedTensor tensor(step.type, extent.input);
  if (step.kind == Kind::broadcast && rank != step.root) return tensor;
  for (std::size_t i = 0; i < extent.input; ++i) tensor.set(i, value_of(step, rank, i));
  return tensor;
}

void expect(const Step& step, int rank, int size, TypedTensor& tensor) {
  const Extent extent = extent_of(step, rank, size);
  const auto self = static_cast<std::size_t>(rank);
  const auto count = static_cast<std::size_t>(step.count);
  switch (step.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      for (std::size_t i = 0; i < extent.output; ++i) tensor.set(i, reduced_at(step, size, i));
      break;
    case Kind::reduce_scatter:
      for (std::size_t i = 0; i < extent.output; ++i)
        tensor.set(i, reduced_at(step, size, extent.input_begins[self] + i));
      break;
    case Kind::broadcast:
      for (std::size_t i = 0; i < extent.output; ++i) tensor.set(i, value_of(step, step.root, i));
      break;
    case Kind::scatter:
      for (std::size_t i = 0; i < extent.output; ++i)
        tensor.set(i, value_of(step, step.root, self * count + i));
      break;
    case Kind::gather:
      for (std::size_t i = 0; i < extent.output; ++i)
        tensor.set(i, value_of(step, static_cast<int>(i / count), i % count));
      break;
    case Kind::all_gather:
      for (int from = 0; from < size; ++from)
        for (std::size_t i = 0; i < extent.output_counts[static_cast<std::size_t>(from)]; ++i)
          tensor.set(extent.output_begins[static_cast<std::size_t>(from)] + i,
                     value_of(step, from, i));
      break;
    case Kind::all_to_all:
      for (int from = 0; from < size; ++from) {
        const std::size_t begin = extent_of(step, from, size).input_begins[self];
        for (std::size_t i = 0; i < extent.output_counts[static_cast<std::size_t>(from)]; ++i)
          tensor.set(extent.output_begins[static_cast<std::size_t>(from)] + i,
                     value_of(step, from, begin + i));
      }
      break;
    default:
      break;
  }
}

TypedTensor message_of(const Step& step, std::size_t index) {
  TypedTensor tensor(step.type, step.messages[index].count);
  for (std::size_t i = 0; i < tensor.count(); ++i)
    tensor.set(i, value_of(step, static_cast<int>(index), i));
  return tensor;
}

std::string difference(const Step& step, const TypedTensor& got, const TypedTensor& wanted) {
  // The library rounds averages in another order than this code, so they may differ a little.
  double tolerance = 0.0;
  if (is_reduction(step.kind) && step.op == ReduceOp::avg && is_floating(step.type)) {
    const bool small = step.type == DataType::f8e4m3 || step.type == DataType::f8e5m2;
    tolerance = small ? 0.26 : 0.01;
  }
  if (tolerance == 0.0 && got == wanted) return {};
  for (std::size_t i = 0; i < wanted.count(); ++i) {
    const double one = got.get(i);
    const double other = wanted.get(i);
    if (std::abs(one - other) <= tolerance * std::abs(other)) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %zu of %zu is %g, not %g", i, wanted.count(), one,
                  other);
    return text;
  }
  return {};
}

}  // namespace leeway::programs
