// Speed of the payload formats beside memcpy and y += x on the same amount of float32 in the same
// process; only these ratios can be compared between machines. As in the engine, a tensor is
// processed packet by packet, from the level-2 cache and from memory.
//
// Names: <what>/<codec>/<instruction set>/<KiB of float32>; --benchmark_filter=... picks some.
// Bytes per second are those of float32. Rows with "half" or "bfloat16" before the codec encode the
// same number of elements of that type, and count them as float32, so that all rates can be
// compared. They compare best with --benchmark_enable_random_interleaving=true
// --benchmark_repetitions=9.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"
#include "codec/instruction_sets.h"
#include "codec/scaled.h"
#include "leeway/codec.h"

namespace leeway {
namespace {

// Sizes in KiB of float32: one that fits half a megabyte of level-2 cache together with a copy, and
// one beyond all caches.
constexpr std::int64_t kCacheKib = 256;
constexpr std::int64_t kMemoryKib = 64 << 10;
constexpr std::size_t kPacketElements = 2048;

// A tensor that begins at a cache line, as frameworks allocate them.
class Tensor {
 public:
  explicit Tensor(std::int64_t kib)
      : size_(static_cast<std::size_t>(kib) * 1024 / sizeof(float)),
        values_(static_cast<float*>(std::aligned_alloc(kAlignment, size_ * sizeof(float))),
                &std::free) {
    for (std::size_t i = 0; i < size_; ++i)
      values_.get()[i] = bell(keyed_hash(1, static_cast<std::uint32_t>(i), 0, 0, 0));
  }
  std::span<float> values() { return {values_.get(), size_}; }

 private:
  static constexpr std::size_t kAlignment = 4096;

  // Returns a sum of four uniform numbers, which is nearly normally distributed.
  static float bell(std::uint64_t bits) {
    int sum = 0;
    for (int part = 0; part < 4; ++part) sum += static_cast<int>(bits >> (16 * part) & 0xFFFF);
    return static_cast<float>(sum - 2 * 0xFFFF) * 0x1p-20f;
  }

  std::size_t size_;
  std::unique_ptr<float, decltype(&std::free)> values_;
};

void set_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0) * 1024);
}

void copy(benchmark::State& state) {
  Tensor in(state.range(0));
  Tensor out(state.range(0));
  for (auto _ : state) {
    std::memcpy(out.values().data(), in.values().data(), in.values().size_bytes());
    benchmark::ClobberMemory();
  }
  set_bytes(state);
}

void add(benchmark::State& state) {
  Tensor in(state.range(0));
  Tensor sum(state.range(0));
  const codec::Format format = codec::format_of(Codec::fp32, DataType::f32);
  for (auto _ : state) {
    codec::accumulate(format, std::as_bytes(in.values()), 1.0f, sum.values());
    benchmark::ClobberMemory();
  }
  set_bytes(state);
}

class Packets {
 public:
  Packets(const CodecOptions& options, DataType dtype, std::int64_t kib)
      : format_(codec::format_of(options, dtype)),
        tensor_(kib),
        values_(tensor_.values()),
        narrow_(dtype == DataType::f32 ? 0 : values_.size()),
        stride_(format_.encoded_bytes(kPacketElements)),
        payload_(stride_ * (values_.size() / kPacketElements)) {
    // Writes the tensor in its own 16-bit element type.
    const std::span bytes = std::as_writable_bytes(std::span(narrow_));
    if (!narrow_.empty()) codec::encode(codec::format_of(Codec::native, dtype), values_, {}, bytes);
    encode();
  }

  void encode() {
    const ByteSpan elements =
        narrow_.empty() ? std::as_bytes(values_) : std::as_bytes(std::span(narrow_));
    const std::size_t packet_bytes = kPacketElements * size_of(format_.element);
    for (std::size_t first = 0; first < values_.size(); first += kPacketElements) {
      const std::size_t at = first * size_of(format_.element);
      const bool last = first + kPacketElements == values_.size();
      const std::byte* ahead = last ? nullptr : elements.data() + at + packet_bytes;
      codec::encode_elements(format_, elements.subspan(at, packet_bytes),
                             {.seed = 1, .first_element = first, .ahead = ahead}, payload(first));
    }
  }
  void accumulate() {
    for (std::size_t first = 0; first < values_.size(); first += kPacketElements) {
      codec::accumulate(format_, payload(first), 0.25f, packet(first));
    }
  }
  void decode() {
    for (std::size_t first = 0; first < values_.size(); first += kPacketElements) {
      codec::decode(format_, payload(first), {}, packet(first));
    }
  }

 private:
  std::span<float> packet(std::size_t first) const {
    return values_.subspan(first, kPacketElements);
  }
  MutableByteSpan payload(std::size_t first) {
    return MutableByteSpan(payload_).subspan(first / kPacketElements * stride_, stride_);
  }

  codec::Format format_;
  Tensor tensor_;
  std::span<float> values_;
  std::vector<std::uint16_t> narrow_;  // the same values in a type of 16 bits; or empty
  std::size_t stride_;
  std::vector<std::byte> payload_;
};

using Step = void (Packets::*)();

void run(benchmark::State& state, const CodecOptions& options, DataType dtype, Step step,
         const codec::InstructionSet& set) {
  const codec::RunOn chosen(set);
  Packets packets(options, dtype, state.range(0));
  for (auto _ : state) {
    (packets.*step)();
    benchmark::ClobberMemory();
  }
  set_bytes(state);
}

void register_step(const std::string& what, const CodecOptions& options, Step step,
                   DataType dtype = DataType::f32) {
  const std::string type = dtype == DataType::f32 ? "" : std::string(to_string(dtype)) + "/";
  for (const auto& set : codec::instruction_sets()) {
    const std::string name =
        what + "/" + type + std::string(to_string(options.codec)) + "/" + set.name;
    benchmark::RegisterBenchmark(name.c_str(), run, options, dtype, step, set)
        ->Arg(kCacheKib)
        ->Arg(kMemoryKib);
  }
}

void register_encoding(const std::string& what, const CodecOptions& options) {
  register_step(what, options, &Packets::encode);
  if (options.codec <= Codec::bf16) return;
  for (const DataType dtype : {DataType::f16, DataType::bf16})
    register_step(what, options, &Packets::encode, dtype);
}

void register_all() {
  benchmark::RegisterBenchmark("memcpy", copy)->Arg(kCacheKib)->Arg(kMemoryKib);
  benchmark::RegisterBenchmark("add", add)->Arg(kCacheKib)->Arg(kMemoryKib);
  for (int i = static_cast<int>(Codec::fp16); i < kCodecCount; ++i) {
    CodecOptions options(static_cast<Codec>(i));
    if (options.codec == Codec::automatic) continue;
    if (options.codec != Codec::luq && options.codec != Codec::sparse) {
      options.rounding = Rounding::nearest;
      register_encoding("nearest", options);
    }
    options.rounding = Rounding::stochastic;
    register_encoding("stochastic", options);
    register_step("accumulate", options, &Packets::accumulate);
    register_step("decode", options, &Packets::decode);
  }
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  leeway::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
