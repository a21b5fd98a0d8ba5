// Speed of the kernels of src/interop/device_codec on a GPU, beside a copy within its memory.
//
//   device_codec_bench [--mib 1024] [--json FILE] [--only PART_OF_A_NAME] [--launches 10]
//
// A line has the kernel's name, the GB/s that it reads and writes, and the ratio of that to the
// copy's GB/s. The last lines encode into pinned host memory on 12 multiprocessors, as usual beside
// training. Exit status 77: there is no GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device_codec/formats.h"
#include "device_codec/kernels.h"
#include "support/device_memory.h"

namespace leeway::device_codec {
namespace {

constexpr int kSkipped = 77;
constexpr unsigned kAll = 1024;  // more multiprocessors than any device has
constexpr std::uint32_t kPayload = 1400;
constexpr unsigned kContributions = 8;  // most contributions; each has memory of its own

struct Arguments {
  std::size_t mib = 1024;
  const char* file = nullptr;
  std::string_view only;
  int launches = 10;  // launches in a round; with 1 there is only one round, for a profiler
};

class Bench {
 public:
  Bench(const device::Driver& driver, const Kernels& kernels, const Arguments& arguments)
      : driver_(driver),
        kernels_(kernels),
        arguments_(arguments),
        bytes_(arguments.mib << 20),
        elements_(driver, bytes_),
        sum_(driver, bytes_),
        packets_(driver, kContributions * (bytes_ / 2 + bytes_ / 64)) {}

  void run() {
    fill();
    measure("copy", 2.0 * static_cast<double>(bytes_), [&] {
      (void)driver_.call.cuMemcpyAsync(address(sum_.data()), address(elements_.data()), bytes_,
                                       nullptr);
    });
#define LEEWAY_MEASURE(name) measure_codec(Codec::name);
    LEEWAY_DEVICE_CODECS(LEEWAY_MEASURE)
#undef LEEWAY_MEASURE
    measure_rotation();
    measure_pinned();
  }

  std::string json() const {
    std::string text = "{";
    for (const auto& [name, rate] : rates_) {
      char line[100];
      std::snprintf(line, sizeof line, "%s\n  \"%s\": {\"gb_per_s\": %.1f, \"of_copy\": %.3f}",
                    text.size() > 1 ? "," : "", name.c_str(), rate / 1e9, rate / copy_);
      text += line;
    }
    return text + "\n}\n";
  }

 private:
  static device::cuda::Address address(const std::byte* memory) {
    return reinterpret_cast<device::cuda::Address>(memory);
  }
  std::uint64_t count() const {
    return bytes_ / sizeof(float);
  }

  // Fills the memory with copies of 16 MiB of values around 1.
  void fill() {
    std::vector<std::uint32_t> values(std::min(bytes_, std::size_t{16} << 20) / sizeof(float));
    std::uint32_t bits = 1;
    for (std::uint32_t& value : values) {
      bits = bits * 1664525 + 1013904223;
      value = (bits & 0x80FFFFFF) | 0x3F000000;
    }
    const auto bytes = std::as_bytes(std::span(values));
    elements_.put(bytes);
    for (std::size_t at = bytes.size(); at < bytes_; at += bytes.size()) {
      (void)driver_.call.cuMemcpyAsync(address(elements_.data() + at), address(elements_.data()),
                                       std::min(bytes.size(), bytes_ - at), nullptr);
    }
  }

  // Measures several rounds, and records the best, in bytes a second.
  void measure(const std::string& name, double bytes, const std::function<void()>& launch) {
    const bool is_copy = name == "copy";
    if (!is_copy && name.find(arguments_.only) == std::string::npos) return;
    const int rounds = arguments_.launches == 1 ? 1 : 5;
    double best = 0.0;
    for (int round = 0; round < rounds; ++round) {
      (void)driver_.call.cuStreamSynchronize(nullptr);
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < arguments_.launches; ++i) launch();
      (void)driver_.call.cuStreamSynchronize(nullptr);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best = std::max(best, arguments_.launches * bytes / took.count());
    }
    if (is_copy) copy_ = best;
    rates_.emplace_back(name, best);
    std::printf("%-32s %8.1f GB/s %6.3f\n", name.c_str(), best / 1e9, best / copy_);
    std::fflush(stdout);
  }

  double encoded_bytes(const Packets& packets) const {
    return static_cast<double>(packets.packet_bytes) / packets.packet_elements *
           static_cast<double>(count());
  }

  void measure_codec(Codec codec) {
    const std::string name(to_string(codec));
    CodecOptions options(codec);
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      options.rounding = rounding;
      const codec::Format format = codec::format_of(options, DataType::f32);
      const Packets packets = cut(format, count(), elements_of(format));
      measure(name + (format.stochastic() ? " stochastic" : " nearest"),
              static_cast<double>(bytes_) + encoded_bytes(packets),
              [&] { encode(format, packets, packets_.data(), kAll); });
    }
    const codec::Format format = codec::format_of(options, DataType::f32);
    const Packets packets = cut(format, count(), elements_of(format));
    for (const unsigned contributions : {1u, 2u, kContributions}) {
      measure(name + " sum of " + std::to_string(contributions),
              static_cast<double>(bytes_) + contributions * encoded_bytes(packets), [&] {
                SumJob job{.packets = packets,
                           .elements = sum_.data(),
                           .contributions_count = contributions};
                for (unsigned i = 0; i < contributions; ++i)
                  job.contributions[i] = {.data = packets_.data() +
                                                  i * packets_.size() / kContributions};
                must(kernels_.sum(format, job, {.multiprocessors = kAll}));
              });
    }
  }

  void measure_rotation() {
    const Packets packets{count(), 2304, 0, static_cast<std::uint32_t>(count() / 2304)};
    measure("rotation", 2.0 * static_cast<double>(bytes_), [&] {
      must(kernels_.rotate(
          {.packets = packets, .elements = elements_.data(), .out = sum_.data(), .place = {}},
          {.multiprocessors = kAll}));
    });
  }

  void measure_pinned() {
    void* memory = nullptr;
    if (driver_.call.cuMemHostAlloc(&memory, packets_.size() / kContributions,
                                    device::cuda::kHostPortable) != device::cuda::kSuccess)
      return;
    for (const unsigned multiprocessors : {4u, 8u, 12u}) {
      const codec::Format format =
          codec::format_of(Codec::nvfp4, DataType::f32, codec::Purpose::sum);
      const Packets packets = cut(format, count(), elements_of(format));
      measure("nvfp4 to the host, " + std::to_string(multiprocessors) + " SMs",
              encoded_bytes(packets),
              [&] { encode(format, packets, static_cast<std::byte*>(memory), multiprocessors); });
    }
    (void)driver_.call.cuMemFreeHost(memory);
  }

  static std::uint32_t elements_of(const codec::Format& format) {
    return static_cast<std::uint32_t>(format.elements_for(kPayload));
  }

  void encode(const codec::Format& format, const Packets& packets, std::byte* out,
              unsigned multiprocessors) {
    must(kernels_.encode(
        format, {.packets = packets, .elements = elements_.data(), .out = out, .place = {}},
        {.multiprocessors = multiprocessors}));
  }

  static void must(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.c_str());
    std::exit(1);
  }

  const device::Driver& driver_;
  const Kernels& kernels_;
  const Arguments arguments_;
  const std::size_t bytes_;
  DeviceMemory elements_;
  DeviceMemory sum_;
  DeviceMemory packets_;
  double copy_ = 0.0;
  std::vector<std::pair<std::string, double>> rates_;
};

int run(const Arguments& arguments) {
  const auto driver = device::Driver::open();
  if (!driver.ok()) return std::printf("skipped: %s\n", driver.status().c_str()), kSkipped;
  const auto context = device::context_of(**driver, 0);
  if (!context.ok()) return std::printf("%s\n", context.status().c_str()), 1;
  const device::ContextScope scope(**driver, context->context);
  const auto kernels = Kernels::load(**driver);
  if (!kernels.ok()) return std::printf("%s\n", kernels.status().c_str()), 1;
  Bench bench(**driver, *kernels, arguments);
  bench.run();
  if (arguments.file == nullptr) return 0;
  std::FILE* const out = std::fopen(arguments.file, "w");
  if (out == nullptr) return std::perror(arguments.file), 1;
  std::fputs(bench.json().c_str(), out);
  return std::fclose(out);
}

}  // namespace
}  // namespace leeway::device_codec

int main(int count, char** words) {
  leeway::device_codec::Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    if (word == "--mib") arguments.mib = std::strtoull(words[i + 1], nullptr, 10);
    if (word == "--json") arguments.file = words[i + 1];
    if (word == "--only") arguments.only = words[i + 1];
    if (word == "--launches") arguments.launches = std::atoi(words[i + 1]);
  }
  return leeway::device_codec::run(arguments);
}
