#include "perf/pattern.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "perf/element.h"

namespace leeway::tools::perf {
namespace {

// Bound on contributions and sums. It keeps the squares in Comparison's sums exact.
constexpr double kSumMax = 1 << 20;
constexpr int kFactorMax = 3;  // largest factor of premul_sum

double integer_max_of(Codec codec) {
  if (codec == Codec::fp16) return integer_max(DataType::f16);
  if (codec == Codec::bf16) return integer_max(DataType::bf16);
  return kSumMax;
}

double exact_integer_max(DataType type, const CollectiveOptions& options) {
  const CodecOptions spread_codec = options.spread_codec.value_or(options.codec);
  return std::min({kSumMax, integer_max(type), integer_max_of(options.codec.codec),
                   integer_max_of(spread_codec.codec)});
}

// The finaliser of splitmix64. It gives neighbouring indices unrelated values.
std::uint64_t mix(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

// Applies `op` to the bits of two whole numbers >= 0.
template <typename Op>
double combine_bits(double a, double b, Op op) {
  return static_cast<double>(op(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::band:
      return combine_bits(a, b, std::bit_and());
    case ReduceOp::bor:
      return combine_bits(a, b, std::bit_or());
    case ReduceOp::bxor:
      return combine_bits(a, b, std::bit_xor());
  }
  return a;
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
}

bool is_unsigned(DataType type) {
  return type == DataType::u8 || type == DataType::u32 || type == DataType::u64;
}

}  // namespace

Pattern::Pattern(const CollectiveOptions& options, DataType type, int ranks)
    : op_(options.op), ranks_(ranks), contributors_(ranks) {
  if (type == DataType::boolean) {
    if (op_ == ReduceOp::sum) op_ = ReduceOp::bor;
    if (op_ == ReduceOp::prod) op_ = ReduceOp::band;
    span_ = 2;
    return;
  }
  double amplitude = exact_integer_max(type, options);
  if (op_ == ReduceOp::sum || op_ == ReduceOp::avg || op_ == ReduceOp::premul_sum) {
    if (op_ == ReduceOp::avg) scale_ = ranks;  // makes the sum a multiple of the divisor
    if (op_ == ReduceOp::premul_sum) amplitude /= kFactorMax;
    const double sum_max = amplitude / scale_;
    contributors_ = std::min(ranks, static_cast<int>(sum_max));
    amplitude = contributors_ == 0 ? 0 : sum_max / contributors_;
  }
  const auto bound = static_cast<std::int64_t>(amplitude);
  low_ = is_unsigned(type) || is_bitwise(op_) ? 0 : -bound;
  span_ = bound - low_ + 1;
}

int Pattern::factor_of(int rank) {
  return 1 + rank % kFactorMax;
}

double Pattern::keyed_integer(int rank, std::size_t index) const {
  const std::uint64_t key =
      mix(index * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(rank) * 0xC2B2AE3D27D4EB4Fu);
  const std::uint64_t position = (key >> 32) * static_cast<std::uint64_t>(span_) >> 32;
  return static_cast<double>(low_ + static_cast<std::int64_t>(position)) * scale_;
}

double Pattern::contribution(int rank, std::size_t index) const {
  // For each element one rank contributes 2 .. 4 and the others contribute 1. So the product is
  // exact in every type.
  if (op_ == ReduceOp::prod) {
    const bool has_factor =
        index % static_cast<std::size_t>(ranks_) == static_cast<std::size_t>(rank);
    return has_factor ? static_cast<double>(2 + index % 3) : 1;
  }
  return rank < contributors_ ? keyed_integer(rank, index) : 0;
}

double Pattern::reduced(std::size_t index) const {
  const auto brought = [&](int rank) {
    const double value = contribution(rank, index);
    return op_ == ReduceOp::premul_sum ? factor_of(rank) * value : value;
  };
  double result = brought(0);
  for (int rank = 1; rank < ranks_; ++rank) result = combine(op_, result, brought(rank));
  return op_ == ReduceOp::avg ? result / ranks_ : result;
}

void fill_input(const Pattern& pattern, int rank, TensorView input) {
  for (std::size_t i = 0; i < input.count; ++i)
    store_element(input, i, pattern.contribution(rank, i));
}

bool fill_expected(const Pattern& pattern, Operation operation, int rank, int ranks, int root,
                   std::size_t count, TensorView expected) {
  for (std::size_t block = 0; block * count < expected.count; ++block) {
    const auto from = origin(operation, rank, ranks, root, block);
    if (!from) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t index = from->block * count + i;
      store_element(
          expected, block * count + i,
          from->source ? pattern.contribution(*from->source, index) : pattern.reduced(index));
    }
  }
  return true;
}

Comparison compare(ConstTensorView output, ConstTensorView expected) {
  Comparison comparison;
  const auto* output_bytes = static_cast<const std::byte*>(output.data);
  const auto* expected_bytes = static_cast<const std::byte*>(expected.data);
  const std::size_t width = size_of(expected.dtype);
  for (std::size_t i = 0; i < expected.count; ++i) {
    const double truth = load_element(expected, i);
    comparison.truth_squares += truth * truth;
    if (std::memcmp(output_bytes + i * width, expected_bytes + i * width, width) == 0) continue;
    const double error = load_element(output, i) - truth;
    comparison.error_squares += error * error;
    ++comparison.wrong;
  }
  return comparison;
}

}  // namespace leeway::tools::perf
