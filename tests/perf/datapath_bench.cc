// Speed of the kernels that touch every payload byte, each beside memcpy on the same amount of
// memory in the same process; only the ratio can be compared between machines.
// --benchmark_filter=... picks one.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/philox.h"
#include "codec/codec.h"
#include "codec/reduce.h"

namespace leeway {
namespace {

// Bytes of a buffer: a chunk, which fits the caches, and a tensor in memory.
constexpr std::int64_t kChunk = 128 << 10;
constexpr std::int64_t kTensor = 16 << 20;

std::vector<float> floats(std::int64_t bytes, std::uint32_t stream) {
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(
        to_unit(keyed_hash(1, static_cast<std::uint32_t>(i), stream, 0, 0)) - 0.5);
  }
  return values;
}

void set_bytes(benchmark::State& state, std::int64_t bytes_per_iteration) {
  state.SetBytesProcessed(state.iterations() * bytes_per_iteration);
}

void copy(benchmark::State& state) {
  const auto in = floats(state.range(0), 0);
  std::vector<float> out(in.size());
  for (auto _ : state) {
    std::memcpy(out.data(), in.data(), in.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  set_bytes(state, state.range(0));
}
BENCHMARK(copy)->Name("memcpy")->Arg(kChunk)->Arg(kTensor);

void checksum(benchmark::State& state, internal::Crc32cKernel kernel) {
  const auto values = floats(16 << 10, 0);
  const ByteSpan bytes =
      std::as_bytes(std::span(values)).first(static_cast<std::size_t>(state.range(0)));
  std::uint32_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = kernel.run(bytes, crc));
  set_bytes(state, state.range(0));
}

template <typename Call>
void with_payload(benchmark::State& state, Codec codec, Call call) {
  const codec::Format format = codec::format_of(codec, DataType::f32);
  auto values = floats(state.range(0), 0);
  std::vector<std::byte> payload(format.encoded_bytes(values.size()));
  codec::encode(format, values, {}, payload);
  for (auto _ : state) {
    call(format, std::span(values), std::span(payload));
    benchmark::ClobberMemory();
  }
  set_bytes(state, state.range(0));
}

void encode(benchmark::State& state, Codec codec) {
  with_payload(state, codec, [](auto& format, auto values, auto payload) {
    codec::encode(format, values, {}, payload);
  });
}
void decode(benchmark::State& state, Codec codec) {
  with_payload(state, codec, [](auto& format, auto values, auto payload) {
    codec::decode(format, payload, {}, values);
  });
}
void accumulate(benchmark::State& state, Codec codec) {
  with_payload(state, codec, [](auto& format, auto values, auto payload) {
    codec::accumulate(format, payload, 0.25f, values);
  });
}

// The byte rate includes every input once and the result once. `checked`: whether the sum looks for
// infinities and NaNs, as lossy sums do.
void weighted_sum(benchmark::State& state, float scale, bool checked) {
  const auto inputs = static_cast<std::size_t>(state.range(1));
  std::vector<std::vector<float>> values;
  std::vector<const std::byte*> pointers;
  for (std::size_t j = 0; j < inputs; ++j) {
    values.push_back(floats(state.range(0), static_cast<std::uint32_t>(j)));
    pointers.push_back(reinterpret_cast<const std::byte*>(values.back().data()));
  }
  const std::vector<double> scales(inputs, scale);
  std::vector<float> out(values[0].size());
  for (auto _ : state) {
    const MutableByteSpan sum = std::as_writable_bytes(std::span(out));
    if (checked) {
      benchmark::DoNotOptimize(codec::weighted_sum_checked(DataType::f32, pointers, scales, sum));
    } else {
      codec::weighted_sum(DataType::f32, pointers, scales, sum);
    }
    benchmark::ClobberMemory();
  }
  set_bytes(state, state.range(0) * static_cast<std::int64_t>(inputs + 1));
}
BENCHMARK_CAPTURE(weighted_sum, unit, 1.0f, false)->ArgsProduct({{kChunk, kTensor}, {2, 4, 8}});
BENCHMARK_CAPTURE(weighted_sum, scaled, 0.25f, false)->ArgsProduct({{kChunk, kTensor}, {2, 4, 8}});
BENCHMARK_CAPTURE(weighted_sum, unit_checked, 1.0f, true)
    ->ArgsProduct({{kChunk, kTensor}, {2, 4, 8}});
BENCHMARK_CAPTURE(weighted_sum, scaled_checked, 0.25f, true)
    ->ArgsProduct({{kChunk, kTensor}, {2, 4, 8}});

// The byte rate includes both operands and the result once.
void reduce(benchmark::State& state, ReduceOp op, DataType dtype) {
  auto accumulator = floats(kChunk, 0);
  const auto operand = floats(kChunk, 1);
  const std::array inputs = {std::as_bytes(std::span(accumulator)).data(),
                             std::as_bytes(std::span(operand)).data()};
  for (auto _ : state) {
    codec::reduce(op, dtype, inputs, std::as_writable_bytes(std::span(accumulator)));
    benchmark::ClobberMemory();
  }
  set_bytes(state, 3 * kChunk);
}

void register_all() {
  for (const auto& kernel : internal::crc32c_kernels()) {
    benchmark::RegisterBenchmark(("crc32c/" + std::string(kernel.name)).c_str(), checksum, kernel)
        ->Arg(72)
        ->Arg(1408)
        ->Arg(8960);
  }
  for (const Codec codec : {Codec::fp16, Codec::bf16}) {
    const std::string name(to_string(codec));
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), encode, codec)
        ->Arg(kChunk)
        ->Arg(kTensor);
    benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode, codec)
        ->Arg(kChunk)
        ->Arg(kTensor);
    benchmark::RegisterBenchmark(("accumulate/" + name).c_str(), accumulate, codec)
        ->Arg(kChunk)
        ->Arg(kTensor);
  }
  for (int dtype = 0; dtype < kDataTypeCount; ++dtype) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const auto type = static_cast<DataType>(dtype);
      const std::string name = std::string(to_string(op)) + "/" + std::string(to_string(type));
      benchmark::RegisterBenchmark(("reduce/" + name).c_str(), reduce, op, type);
    }
  }
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  leeway::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
