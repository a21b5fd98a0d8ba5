#include "erasure/cauchy.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/contracts.h"

namespace leeway::erasure {
namespace {

// ISA-L's parameters are not const.
unsigned char* bytes_of(const std::byte* data) {
  return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data));
}

std::uint8_t coefficient(std::uint32_t row, std::size_t packet) {
  return gf_inv(static_cast<unsigned char>((limits::kCodePackets + row) ^ packet));
}

// ISA-L's tables for a product by each coefficient, row after row. To make those of four rows took
// a fifth of the time of encoding.
class ProductTables {
 public:
  static constexpr std::size_t kBytes = 32;

  ProductTables() : bytes_(kBytes * limits::kCodeParitiesMax * limits::kCodePackets) {
    for (std::uint32_t row = 0; row < limits::kCodeParitiesMax; ++row) {
      for (std::size_t i = 0; i < limits::kCodePackets; ++i)
        gf_vect_mul_init(coefficient(row, i), bytes_.data() + place(row) + kBytes * i);
    }
  }
  // For products of the row with the first `packets` packets.
  void copy_row(std::uint32_t row, std::size_t packets, unsigned char* out) const {
    std::memcpy(out, bytes_.data() + place(row), kBytes * packets);
  }

 private:
  static std::size_t place(std::uint32_t row) { return kBytes * row * limits::kCodePackets; }
  std::vector<unsigned char> bytes_;
};

// ISA-L reads all packets side by side, in steps of a cache line, which no hardware prefetches.
// Packets of a code do not lie side by side either. Asked for one after the other, they come 1.3
// times as fast from memory (README.md).
void prefetch(const void* packet, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const std::byte*>(packet) + at, 0, 2);
}

}  // namespace

void encode(std::span<const ByteSpan> packets, std::uint32_t row,
            std::span<const MutableByteSpan> out) {
  constexpr std::size_t kRowsMax = 4;
  LEEWAY_ASSERT(!packets.empty() && packets.size() <= limits::kCodePackets);
  LEEWAY_ASSERT(out.size() <= kRowsMax && row + out.size() <= limits::kCodeParitiesMax);
  static const ProductTables products;
  std::array<unsigned char, ProductTables::kBytes * kRowsMax * limits::kCodePackets> tables;
  std::array<unsigned char*, limits::kCodePackets> sources;
  std::array<unsigned char*, kRowsMax> targets;
  for (const ByteSpan packet : packets) prefetch(packet.data(), packet.size());
  // The last packet takes part as far as it goes.
  const auto sum = [&](std::size_t count, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    for (std::size_t r = 0; r < out.size(); ++r) {
      targets[r] = bytes_of(out[r].data()) + begin;
      if (count == 0) std::memset(targets[r], 0, end - begin);
      products.copy_row(row + static_cast<std::uint32_t>(r), count,
                        tables.data() + r * count * ProductTables::kBytes);
    }
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) sources[i] = bytes_of(packets[i].data()) + begin;
    ec_encode_data(static_cast<int>(end - begin), static_cast<int>(count),
                   static_cast<int>(out.size()), tables.data(), sources.data(), targets.data());
  };
  const std::size_t last = packets.back().size();
  sum(packets.size(), 0, last);
  sum(packets.size() - 1, last, out.front().size());
}

void Recovery::make_matrix(std::size_t packets, std::span<const std::uint8_t> rows) {
  missing_ = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    if (rows[i] != kPresent) missing_at_[missing_++] = static_cast<std::uint8_t>(i);
  }
  for (std::size_t a = 0; a < missing_; ++a) {
    for (std::size_t b = 0; b < missing_; ++b)
      square_[a * missing_ + b] = coefficient(rows[missing_at_[a]], missing_at_[b]);
  }
  const int singular =
      gf_invert_matrix(square_.data(), inverse_.data(), static_cast<int>(missing_));
  LEEWAY_ASSERT(singular == 0);
  // parity a - what is there = square * missing: so missing = inverse * (parity a + what is there).
  // The product of two matrices is one of ISA-L's sums, too: of rows, where packets have bytes.
  std::array<unsigned char*, kRows> sources;
  std::array<unsigned char*, kRows> targets;
  for (std::size_t a = 0; a < missing_; ++a) {
    sources[a] = seen_.data() + a * kPackets;
    targets[a] = matrix_.data() + a * packets;
    for (std::size_t i = 0; i < packets; ++i)
      sources[a][i] = rows[i] == kPresent ? coefficient(rows[missing_at_[a]], i) : 0;
  }
  const auto count = static_cast<int>(missing_);
  ec_init_tables(count, count, inverse_.data(), tables_.data());
  ec_encode_data(static_cast<int>(packets), count, count, tables_.data(), sources.data(),
                 targets.data());
  for (std::size_t b = 0; b < missing_; ++b) {
    for (std::size_t a = 0; a < missing_; ++a)
      targets[b][missing_at_[a]] = inverse_[b * missing_ + a];
  }
}

// In strips, since what is computed lands where its parity lies.
void Recovery::run(std::span<const MutableByteSpan> packets, std::span<const std::uint8_t> rows,
                   std::size_t bytes, ByteSpan last_parity) {
  constexpr std::size_t kStrip = 512;
  LEEWAY_ASSERT(packets.size() <= kPackets && packets.size() == rows.size());
  make_matrix(packets.size(), rows);
  if (missing_ == 0) return;
  for (const MutableByteSpan packet : packets) prefetch(packet.data(), packet.size());
  const auto count = static_cast<int>(packets.size());
  ec_init_tables(count, static_cast<int>(missing_), matrix_.data(), tables_.data());
  std::array<unsigned char*, kPackets> sources;
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
    ec_encode_data(static_cast<int>(strip), count, static_cast<int>(missing_), tables_.data(),
                   sources.data(), targets.data());
    for (std::size_t m = 0; m < missing_; ++m) {
      const MutableByteSpan place = packets[missing_at_[m]];
      if (place.size() <= begin) continue;
      std::memcpy(place.data() + begin, computed[m].data(), std::min(strip, place.size() - begin));
    }
  }
}

// The number of losses is binomial. In bursts it is taken as negative binomial, of this mean and of
// the dispersion that was measured.
double shortfall(std::uint32_t packets, std::uint32_t parities, double loss, double dispersion) {
  if (loss <= 0.0) return 0.0;
  loss = std::min(loss, 0.99);
  const double sent = packets + parities;
  const bool bursts = dispersion > 1.0;
  const double shape = bursts ? sent * loss / (dispersion - 1.0) : 0.0;
  double chance =  // of k losses
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
