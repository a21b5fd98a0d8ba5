// Cost of sealing and opening a datagram, by both ciphers and at two sizes. AES is measured with
// each library that has it. As in trains of the core, a datagram's 56-byte header lies apart from
// its payload. Runs `openssl speed` in between, for comparison.
//
//   seal_bench [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "seal/aead.h"
#include "seal/associations.h"
#include "seal/ipsec_mb.h"

using namespace leeway;

namespace {

constexpr std::size_t kHeader = 56;
constexpr std::size_t kTrainBytes = 63'000;

struct Sample {
  double seal_ns = 0;
  double open_ns = 0;
};

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

seal::PairKeys swapped(const seal::PairKeys& keys) {
  return {.root = keys.root, .own = keys.peers, .peers = keys.own};
}

// Two processes in one thread: one opens what the other seals.
class Pair {
 public:
  Pair(const seal::CipherMaker& maker, std::size_t bytes)
      : bytes_(bytes),
        count_(std::min<std::size_t>(64, kTrainBytes / bytes)),
        headers_(count_ * kHeader),
        payload_(count_ * bytes),
        wire_(count_ * (bytes + seal::kOverheadBytes)) {
    seal::PairKeys keys;
    keys.own.fill(std::byte{1});
    keys.peers.fill(std::byte{2});
    sender_.meet(Instant{0}, 1, keys, maker);
    receiver_.meet(Instant{0}, 0, swapped(keys), maker);
    for (std::size_t i = 0; i < count_; ++i) {
      slices_.push_back({headers_.data() + i * kHeader, kHeader});
      slices_.push_back({payload_.data() + i * bytes, bytes - kHeader});
    }
  }

  Sample run() {
    const Train train{1, bytes_, count_ * bytes_, slices_};
    const double start = now_ns();
    const std::size_t used = sender_.seal(Instant{0}, train, wire_);
    const double sealed = now_ns();
    std::size_t opened = 0;
    const std::size_t step = bytes_ + seal::kOverheadBytes;
    for (std::size_t at = 0; at < used; at += step)
      opened += receiver_.open(Instant{0}, 0, MutableByteSpan(wire_).subspan(at, step)).size();
    const double done = now_ns();
    if (opened != train.total_bytes) std::abort();
    const auto each = static_cast<double>(count_);
    return {(sealed - start) / each, (done - sealed) / each};
  }

 private:
  std::size_t bytes_;
  std::size_t count_;
  std::vector<std::byte> headers_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> wire_;
  std::vector<Slice> slices_;
  seal::Associations sender_;
  seal::Associations receiver_;
};

// Returns the ns that openssl takes for `bytes` bytes, or 0 without that program.
double openssl_speed(const char* cipher, std::size_t bytes) {
  const std::string command = "openssl speed -seconds 1 -bytes " + std::to_string(bytes) +
                              " -evp " + cipher + " 2>/dev/null | tail -1 | awk '{print $NF}'";
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  double thousands = 0;
  const int fields = std::fscanf(pipe, "%lfk", &thousands);
  pclose(pipe);
  return fields == 1 && thousands > 0 ? static_cast<double>(bytes) / thousands * 1e6 : 0;
}

struct Suite {
  const char* cipher;  // as OpenSSL calls it
  const char* by;
  seal::CipherMaker maker;
};

std::vector<Suite> suites() {
  const auto openssl = [](seal::AeadKind kind) -> seal::CipherMaker {
    return [kind](bool seals) { return seal::make_openssl_aead(kind, seals); };
  };
  std::vector<Suite> all = {
      {"aes-128-gcm", "OpenSSL", openssl(seal::AeadKind::aes_128_gcm)},
      {"chacha20-poly1305", "OpenSSL", openssl(seal::AeadKind::chacha20_poly1305)}};
  if (!seal::ipsec_mb_version().empty())
    all.insert(all.begin(),
               {"aes-128-gcm", "IPsec-MB", [](bool) { return seal::make_ipsec_mb_aes_gcm(); }});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::printf("%-18s %-9s %6s %9s %9s %14s   (ns a datagram, medians)\n", "cipher", "by", "bytes",
              "seal", "open", "openssl speed");
  for (const Suite& suite : suites()) {
    for (const std::size_t bytes : {1440, 8900}) {
      Pair pair(suite.maker, bytes);
      std::vector<double> seals;
      std::vector<double> opens;
      for (int i = 0; i < rounds; ++i) {
        const Sample sample = pair.run();
        seals.push_back(sample.seal_ns);
        opens.push_back(sample.open_ns);
      }
      std::printf("%-18s %-9s %6zu %9.0f %9.0f %14.0f\n", suite.cipher, suite.by, bytes,
                  median(seals), median(opens), openssl_speed(suite.cipher, bytes));
    }
  }
  return 0;
}
