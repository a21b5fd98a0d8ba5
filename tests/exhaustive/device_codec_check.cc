// Sends many elements through every kernel of src/interop/device_codec. Compares each encoded byte,
// and each bit of decoded values and sums, with src/math/codec. Takes minutes for each codec, so it
// is a program and not a test.
//
//   device_codec_check [--elements COUNT] [--codec NAME] [--device]
//
// The kernels run as host functions; with --device on the first GPU, through the CUDA driver. Exit
// status 1 if anything differs, 77 if there is no GPU.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device_codec/kernels.h"
#include "support/device_memory.h"
#include "support/host_kernels.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

constexpr std::uint64_t kBatch = std::uint64_t{1} << 20;
constexpr int kSkipped = 77;

// ---- where kernels run ----

class Machine {
 public:
  virtual ~Machine() = default;
  // Encodes packets. The job's addresses are those of host memory, also in accumulate().
  virtual void encode(const codec::Format& format, const EncodeJob& job) = 0;
  // Adds one encoded contribution, with one factor for all packets.
  virtual void accumulate(const codec::Format& format, const SumJob& job) = 0;
};

class Host final : public Machine {
 public:
  void encode(const codec::Format& format, const EncodeJob& job) override {
    encode_on_host(format, job);
  }
  void accumulate(const codec::Format& format, const SumJob& job) override {
    sum_on_host(format, job);
  }
};

class Gpu final : public Machine {
 public:
  Gpu(const device::Driver& driver, const Kernels& kernels)
      : kernels_(kernels),
        elements_(driver, kBatch * sizeof(float)),
        packets_(driver, 2 * kBatch * sizeof(float)),
        factors_(driver, kBatch / 32 * sizeof(float)) {}

  void encode(const codec::Format& format, const EncodeJob& job) override {
    const std::size_t bytes = bytes_of(format, job.packets);
    elements_.put({job.elements, job.packets.elements * size_of(format.element)});
    EncodeJob moved = job;
    moved.elements = elements_.data();
    moved.out = packets_.data();
    must(kernels_.encode(format, moved, {}));
    packets_.get(std::span(job.out, bytes));
  }

  void accumulate(const codec::Format& format, const SumJob& job) override {
    const std::size_t bytes = job.packets.elements * size_of(format.element);
    const Contribution& one = job.contributions[0];
    elements_.put({job.elements, bytes});
    packets_.put({one.data, bytes_of(format, job.packets)});
    factors_.put(std::as_bytes(std::span(one.factors, job.packets.count)));
    SumJob moved = job;
    moved.elements = elements_.data();
    moved.contributions[0].data = packets_.data();
    moved.contributions[0].factors = reinterpret_cast<const float*>(factors_.data());
    must(kernels_.sum(format, moved, {}));
    elements_.get(std::span(job.elements, bytes));
  }

 private:
  static void must(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.c_str());
    std::exit(1);
  }

  const Kernels& kernels_;
  DeviceMemory elements_;
  DeviceMemory packets_;
  DeviceMemory factors_;
};

// ---- test data ----

// SplitMix64 (Steele, Lea, Flood).
std::uint64_t random_bits(std::uint64_t i) {
  std::uint64_t z = i * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

// Returns value i of a batch. Three kinds take turns, 8,192 values each: gradients of some spread,
// any finite bits, and ties between codes. In every fourth batch some values are special ones.
float value(std::uint64_t batch, std::uint64_t i) {
  const std::uint64_t bits = random_bits(batch * kBatch + i);
  const auto low = static_cast<std::uint32_t>(bits);
  if (batch % 4 == 3 && bits >> 50 == 0) {
    constexpr std::uint32_t kSpecial[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
                                          0x80000000, 0x00000001, 0x007FFFFF, 0x7F7FFFFF};
    return std::bit_cast<float>(kSpecial[low % std::size(kSpecial)]);
  }
  switch ((batch + i / 8192) % 3) {
    case 0: {  // 2^-20 .. 2^12
      const std::uint32_t exponent = 107 + (low >> 23 & 31);
      return std::bit_cast<float>((low & 0x807FFFFF) | exponent << 23);
    }
    case 1:
      return std::bit_cast<float>(low & 0xFF7FFFFF);
    default:
      return std::ldexp(static_cast<float>(static_cast<int>(low % 513) - 256),
                        static_cast<int>(bits >> 40 & 7) - 8);
  }
}

// ---- comparison ----

// Returns the number of bytes that differ, or, with `floats`, the number of floats. Two NaNs do not
// differ, whatever their payloads.
std::uint64_t differences(std::span<const std::byte> a, std::span<const std::byte> b, bool floats) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return 0;
  std::uint64_t different = 0;
  const std::size_t width = floats ? sizeof(float) : 1;
  for (std::size_t i = 0; i < a.size(); i += width) {
    if (std::memcmp(&a[i], &b[i], width) == 0) continue;
    float x = 0.0f;
    float y = 0.0f;
    if (floats) std::memcpy(&x, &a[i], sizeof x), std::memcpy(&y, &b[i], sizeof y);
    different += !(floats && std::isnan(x) && std::isnan(y));
  }
  return different;
}

// Computes the same sum as Machine::accumulate() by src/math/codec.
void accumulate_by_definition(const codec::Format& format, const Packets& packets,
                              std::span<const std::byte> encoded, float factor,
                              std::span<float> sum) {
  for (std::uint32_t i = 0; i < packets.count; ++i) {
    const PacketOfJob packet(packets, i);
    codec::accumulate(format, encoded.subspan(packet.at, format.encoded_bytes(packet.elements)),
                      factor, sum.subspan(packet.first, packet.elements));
  }
}

class Check {
 public:
  Check(Machine& machine, const CodecOptions& options)
      : machine_(machine), format_(codec::format_of(options, DataType::f32)) {}

  // Returns the number of differences over `elements` elements, in packets of several lengths.
  std::uint64_t run(std::uint64_t elements) {
    std::uint64_t different = 0;
    for (std::uint64_t batch = 0; batch * kBatch < elements; ++batch) {
      const std::uint64_t left = elements - batch * kBatch;
      different += try_batch(batch, std::min(left, kBatch - batch % 50));
    }
    return different;
  }

 private:
  std::uint64_t try_batch(std::uint64_t batch, std::uint64_t count) {
    values_.resize(count);
    for (std::uint64_t i = 0; i < count; ++i) values_[i] = value(batch, i);
    const std::uint32_t lengths[] = {static_cast<std::uint32_t>(format_.elements_for(1400)), 128,
                                     2048, static_cast<std::uint32_t>(format_.elements_for(8900))};
    const Packets packets = cut(format_, count, lengths[batch % std::size(lengths)]);
    codec::Place place = kPlace;
    place.first_element = batch * kBatch;
    const auto tensor = std::as_bytes(std::span(values_));
    const std::vector<std::byte> expected = defined_packets(format_, packets, tensor, place);
    encoded_.assign(expected.size(), std::byte{0x55});
    machine_.encode(
        format_,
        {.packets = packets, .elements = tensor.data(), .out = encoded_.data(), .place = place});
    const std::uint64_t different = differences(encoded_, expected, /*floats=*/false);

    const std::vector<float> factors(packets.count, 0.3f);
    sum_ = values_;
    accumulate_by_definition(format_, packets, expected, 0.3f, values_);
    SumJob job{.packets = packets,
               .elements = reinterpret_cast<std::byte*>(sum_.data()),
               .adds = true,
               .contributions_count = 1};
    job.contributions[0] = {.data = expected.data(), .factors = factors.data()};
    machine_.accumulate(format_, job);
    return different + differences(std::as_bytes(std::span(sum_)),
                                   std::as_bytes(std::span(values_)), /*floats=*/true);
  }

  Machine& machine_;
  const codec::Format format_;
  std::vector<float> values_;
  std::vector<float> sum_;
  std::vector<std::byte> encoded_;
};

bool check(Machine& machine, std::uint64_t elements, std::string_view only) {
  bool equal = true;
  for (const CodecOptions& options : every_option_on_devices()) {
    if (!only.empty() && to_string(options.codec) != only) continue;
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t different = Check(machine, options).run(elements);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%-28s %llu elements, %llu differences, %.0f s\n",
                to_string(codec::format_of(options, DataType::f32).options).c_str(),
                static_cast<unsigned long long>(elements),
                static_cast<unsigned long long>(different), took.count());
    std::fflush(stdout);
    equal &= different == 0;
  }
  return equal;
}

struct Arguments {
  std::uint64_t elements = 1'000'000'000;
  std::string codec;
  bool device = false;
};

std::optional<Arguments> parse(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const char* const next = i + 1 < count ? words[i + 1] : nullptr;
    if (word == "--device") {
      arguments.device = true;
    } else if (word == "--elements" && next != nullptr) {
      arguments.elements = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--codec" && next != nullptr) {
      arguments.codec = words[++i];
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

int check_device(const Arguments& arguments) {
  const auto driver = device::Driver::open();
  if (!driver.ok()) {
    std::printf("skipped: %s\n", driver.status().c_str());
    return kSkipped;
  }
  const auto context = device::context_of(**driver, 0);
  if (!context.ok()) return std::printf("%s\n", context.status().c_str()), 1;
  const device::ContextScope scope(**driver, context->context);
  // The CUDA double has no kernels of its own, so it is given kernels that are host functions.
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const bool is_double = register_host_kernels(library);
  const auto kernels = Kernels::load(**driver);
  if (!kernels.ok()) return std::printf("%s\n", kernels.status().c_str()), 1;
  Gpu gpu(**driver, *kernels);
  std::printf("on %s\n", is_double ? "the driver double" : "device 0");
  return check(gpu, arguments.elements, arguments.codec) ? 0 : 1;
}

}  // namespace
}  // namespace leeway::device_codec

int main(int count, char** words) {
  using namespace leeway::device_codec;  // NOLINT(google-build-using-namespace)
  const auto arguments = parse(count, words);
  if (!arguments) {
    std::fprintf(stderr,
                 "usage: device_codec_check [--elements COUNT] [--codec NAME] [--device]\n");
    return 2;
  }
  if (arguments->device) return check_device(*arguments);
  Host host;
  return check(host, arguments->elements, arguments->codec) ? 0 : 1;
}
