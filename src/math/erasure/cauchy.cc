#include "erasure/cauchy.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/contracts.h"
#include "erasure/products.h"

namespace leeway::erasure {
namespace {

static_assert(limits::kCodePackets + limits::kCodeParitiesMax <= 256, "all are bytes, none equal");

const unsigned char* bytes_of(const std::byte* data) {
  return reinterpret_cast<const unsigned char*>(data);
}
unsigned char* bytes_of(std::byte* data) {
  return reinterpret_cast<unsigned char*>(data);
}

std::uint8_t coefficient(std::uint32_t row, std::size_t packet) {
  return gf_inv(static_cast<unsigned char>((limits::kCodePackets + row) ^ packet));
}

const internal::ProductKernel& kernel() {
  static const internal::ProductKernel fastest = internal::product_kernels().front();
  return fastest;
}

// The kernel's tables for every coefficient, row after row. They are made once, because with ISA-L
// making the tables of four rows took 20 % of each encode().
class ProductTables {
 public:
  ProductTables() : bytes_(place(limits::kCodeParitiesMax)) {
    for (std::uint32_t row = 0; row < limits::kCodeParitiesMax; ++row) {
      std::array<std::uint8_t, limits::kCodePackets> coefficients;
      for (std::size_t i = 0; i < coefficients.size(); ++i) coefficients[i] = coefficient(row, i);
      kernel().make_tables(coefficients, bytes_.data() + place(row));
    }
  }
  // Copies the tables for products of the row with the first `packets` packets.
  void copy_row(std::uint32_t row, std::size_t packets, unsigned char* out) const {
    std::memcpy(out, bytes_.data() + place(row), kernel().table_bytes * packets);
  }

 private:
  static std::size_t place(std::uint32_t row) {
    return kernel().table_bytes * row * limits::kCodePackets;
  }
  std::vector<unsigned char> bytes_;
};

// Prefetches a packet. Kernels read all packets of a code side by side, a cache line of each at a
// time, from scattered addresses, which hardware prefetchers do not follow. With this, packets come
// 1.3 times as fast from memory (README.md).
void prefetch(const void* packet, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const std::byte*>(packet) + at, 0, 2);
}

}  // namespace

void encode(std::span<const ByteSpan> packets, std::uint32_t row,
            std::span<const MutableByteSpan> out) {
  constexpr std::size_t kRowsMax = 8;
  LEEWAY_ASSERT(!packets.empty() && packets.size() <= limits::kCodePackets);
  LEEWAY_ASSERT(out.size() <= kRowsMax && row + out.size() <= limits::kCodeParitiesMax);
  static const ProductTables products;
  std::array<unsigned char, internal::kTableBytesMax * kRowsMax * limits::kCodePackets> tables;
  std::array<const unsigned char*, limits::kCodePackets> sources;
  std::array<unsigned char*, kRowsMax> targets;
  for (const ByteSpan packet : packets) prefetch(packet.data(), packet.size());
  // Sums bytes begin .. end of the first `count` packets. The last packet may be short; for bytes
  // behind its end, `count` leaves it out.
  const auto sum = [&](std::size_t count, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    for (std::size_t r = 0; r < out.size(); ++r) {
      targets[r] = bytes_of(out[r].data()) + begin;
      if (count == 0) std::memset(targets[r], 0, end - begin);
      products.copy_row(row + static_cast<std::uint32_t>(r), count,
                        tables.data() + r * count * kernel().table_bytes);
    }
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) sources[i] = bytes_of(packets[i].data()) + begin;
    kernel().sum(end - begin, tables.data(), std::span(sources).first(count),
                 std::span(targets).first(out.size()));
  };
  const std::size_t last = packets.back().size();
  sum(packets.size(), 0, last);
  sum(packets.size() - 1, last, out.front().size());
}

// Inverts the matrix of the missing packets' coefficients in the parities. In this Cauchy matrix,
// the element of parity a and packet b is 1 / (x_a ^ y_b), x_a being 128 plus the parity's row and
// y_b the packet's place. Element [b][a] of the inverse is known (Schechter 1959):
//   product over k of (x_a ^ y_k) (x_k ^ y_b)
//   / ((x_a ^ y_b), product over k != a of (x_a ^ x_k), product over k != b of (y_b ^ y_k)).
// The time grows with the square of the number of packets; elimination's grows with the cube.
void Recovery::invert(std::span<const std::uint8_t> rows) {
  std::array<std::uint8_t, kRows> x;
  std::array<std::uint8_t, kRows> of_parity;
  std::array<std::uint8_t, kRows> of_packet;
  for (std::size_t a = 0; a < missing_; ++a)
    x[a] = static_cast<std::uint8_t>(kPackets + rows[missing_at_[a]]);
  for (std::size_t a = 0; a < missing_; ++a) {
    unsigned char parity_over = 1, parity_under = 1, packet_over = 1, packet_under = 1;
    for (std::size_t k = 0; k < missing_; ++k) {
      parity_over = gf_mul(parity_over, x[a] ^ missing_at_[k]);
      packet_over = gf_mul(packet_over, x[k] ^ missing_at_[a]);
      if (k == a) continue;
      parity_under = gf_mul(parity_under, x[a] ^ x[k]);
      packet_under = gf_mul(packet_under, missing_at_[a] ^ missing_at_[k]);
    }
    of_parity[a] = gf_mul(parity_over, gf_inv(parity_under));
    of_packet[a] = gf_mul(packet_over, gf_inv(packet_under));
  }
  for (std::size_t b = 0; b < missing_; ++b) {
    for (std::size_t a = 0; a < missing_; ++a) {
      const unsigned char product = gf_mul(of_parity[a], of_packet[b]);
      inverse_[b * missing_ + a] = gf_mul(product, gf_inv(x[a] ^ missing_at_[b]));
    }
  }
}

void Recovery::make_matrix(std::size_t packets, std::span<const std::uint8_t> rows) {
  missing_ = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    if (rows[i] != kPresent) missing_at_[missing_++] = static_cast<std::uint8_t>(i);
  }
  invert(rows);
  // The missing packets times the Cauchy matrix are the parities minus what present packets added
  // to them. So the missing packets are the inverse matrix times (parities + what present packets
  // added), because minus is plus in GF(2^8). kernel().sum() also multiplies these matrices, with
  // rows in place of packets.
  std::array<const unsigned char*, kRows> sources;
  std::array<unsigned char*, kRows> targets;
  for (std::size_t a = 0; a < missing_; ++a) {
    std::uint8_t* seen = seen_.data() + a * kPackets;
    sources[a] = seen;
    targets[a] = matrix_.data() + a * packets;
    for (std::size_t i = 0; i < packets; ++i)
      seen[i] = rows[i] == kPresent ? coefficient(rows[missing_at_[a]], i) : 0;
  }
  kernel().make_tables(std::span(inverse_).first(missing_ * missing_), tables_.data());
  kernel().sum(packets, tables_.data(), std::span(sources).first(missing_),
               std::span(targets).first(missing_));
  for (std::size_t b = 0; b < missing_; ++b) {
    for (std::size_t a = 0; a < missing_; ++a)
      targets[b][missing_at_[a]] = inverse_[b * missing_ + a];
  }
}

// Computes in strips, because a result replaces a parity that the other results still need.
void Recovery::run(std::span<const MutableByteSpan> packets, std::span<const std::uint8_t> rows,
                   std::size_t bytes, ByteSpan last_parity) {
  constexpr std::size_t kStrip = 256;
  LEEWAY_ASSERT(packets.size() <= kPackets && packets.size() == rows.size());
  make_matrix(packets.size(), rows);
  if (missing_ == 0) return;
  for (const MutableByteSpan packet : packets) prefetch(packet.data(), packet.size());
  kernel().make_tables(std::span(matrix_).first(missing_ * packets.size()), tables_.data());
  std::array<const unsigned char*, kPackets> sources;
  std::array<unsigned char*, kRows> targets;
  std::array<std::array<unsigned char, kStrip>, kRows> computed;
  std::array<unsigned char, kStrip> padded;
  for (std::size_t m = 0; m < missing_; ++m) targets[m] = computed[m].data();
  const std::size_t last = packets.size() - 1;
  for (std::size_t begin = 0; begin < bytes; begin += kStrip) {
    const std::size_t strip = std::min(kStrip, bytes - begin);
    for (std::size_t i = 0; i < packets.size(); ++i)
      sources[i] = bytes_of(packets[i].data()) + begin;
    const ByteSpan end = last_parity.empty() ? ByteSpan(packets[last]) : last_parity;
    if (end.size() >= begin + strip) {
      sources[last] = bytes_of(end.data()) + begin;
    } else {
      const std::size_t rest = end.size() - std::min(end.size(), begin);
      if (rest > 0) std::memcpy(padded.data(), end.data() + begin, rest);
      std::memset(padded.data() + rest, 0, strip - rest);
      sources[last] = padded.data();
    }
    kernel().sum(strip, tables_.data(), std::span(sources).first(packets.size()),
                 std::span(targets).first(missing_));
    for (std::size_t m = 0; m < missing_; ++m) {
      const MutableByteSpan place = packets[missing_at_[m]];
      if (place.size() <= begin) continue;
      std::memcpy(place.data() + begin, computed[m].data(), std::min(strip, place.size() - begin));
    }
  }
}

// The number of losses is taken to have a binomial distribution. With bursts it has a negative
// binomial distribution of the same mean and the given dispersion.
double shortfall(std::uint32_t packets, std::uint32_t parities, double loss, double dispersion) {
  if (loss <= 0.0) return 0.0;
  loss = std::min(loss, 0.99);
  const double sent = packets + parities;
  const bool bursts = dispersion > 1.0;
  const double shape = bursts ? sent * loss / (dispersion - 1.0) : 0.0;
  double chance =  // chance of k losses
      std::exp(bursts ? -shape * std::log(dispersion) : sent * std::log1p(-loss));
  double enough = 0.0;
  for (std::uint32_t k = 0; k <= parities; ++k) {
    enough += chance;
    chance *= bursts ? (shape + k) / (k + 1.0) * (1.0 - 1.0 / dispersion)
                     : (sent - k) / (k + 1.0) * loss / (1.0 - loss);
  }
  return std::max(0.0, 1.0 - enough);
}

}  // namespace leeway::erasure
