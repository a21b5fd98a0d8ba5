// Cost of parity, beside a copy of the same packets: computing parities from packets, and lost
// packets from parities.
//
//   erasure_bench [rounds]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "erasure/cauchy.h"

using namespace leeway;

namespace {

constexpr std::size_t kBytes = 1416;
constexpr std::size_t kPackets = limits::kCodePackets;
constexpr int kRepeats = 50;

double us_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRepeats; ++i) work();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>(end - start).count() / kRepeats;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// A code whose first packets are lost. They are computed from its first parities.
class Code {
 public:
  explicit Code(std::size_t missing)
      : missing_(missing), packets_(kPackets, std::vector<std::byte>(kBytes)), copy_(packets_) {
    for (std::size_t i = 0; i < kPackets; ++i) {
      for (std::size_t at = 0; at < kBytes; ++at)
        packets_[i][at] = static_cast<std::byte>(i * 31 + at * 7);
    }
    parities_.assign(limits::kCodeParitiesMax, std::vector<std::byte>(kBytes));
    encode();
    places_.assign(packets_.begin(), packets_.end());
    rows_.assign(kPackets, erasure::Recovery::kPresent);
    for (std::size_t i = 0; i < missing; ++i) rows_[i] = static_cast<std::uint8_t>(i);
  }

  void encode() {
    const std::vector<ByteSpan> sources(packets_.begin(), packets_.end());
    for (std::size_t row = 0; row < missing_; row += 4) {
      std::array<MutableByteSpan, 4> out;
      for (std::size_t i = 0; i < 4; ++i) out[i] = parities_[row + i];
      erasure::encode(sources, static_cast<std::uint32_t>(row), out);
    }
  }
  void recover() {
    for (std::size_t i = 0; i < missing_; ++i)
      std::memcpy(packets_[i].data(), parities_[i].data(), kBytes);
    recovery_.run(places_, rows_, kBytes, {});
  }
  void copy() {
    for (std::size_t i = 0; i < kPackets; ++i)
      std::memcpy(copy_[i].data(), packets_[i].data(), kBytes);
  }

 private:
  std::size_t missing_;
  std::vector<std::vector<std::byte>> packets_;
  std::vector<std::vector<std::byte>> copy_;
  std::vector<std::vector<std::byte>> parities_;
  std::vector<MutableByteSpan> places_;
  std::vector<std::uint8_t> rows_;
  erasure::Recovery recovery_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  std::printf("%zu packets of %zu bytes; us a code, and times a copy of its packets\n", kPackets,
              kBytes);
  std::printf("%8s %10s %8s %10s %8s %10s\n", "missing", "encode", "times", "recover", "times",
              "copy");
  for (const std::size_t missing : {1, 4, 8, 16, 32}) {
    Code code(missing);
    std::vector<double> encode;
    std::vector<double> recover;
    std::vector<double> copy;
    for (int round = 0; round < rounds; ++round) {
      encode.push_back(us_of([&] { code.encode(); }));
      recover.push_back(us_of([&] { code.recover(); }));
      copy.push_back(us_of([&] { code.copy(); }));
    }
    const double each = median(copy);
    std::printf("%8zu %10.2f %8.1f %10.2f %8.1f %10.2f\n", missing, median(encode),
                median(encode) / each, median(recover), median(recover) / each, each);
  }
  return 0;
}
