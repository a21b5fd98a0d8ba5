#include "erasure/cauchy.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cmath>
#include <cstring>

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

}  // namespace

void encode(std::span<const ByteSpan> packets, std::uint32_t row,
            std::span<const MutableByteSpan> out) {
  constexpr std::size_t kRowsMax = 4;
  LEEWAY_ASSERT(!packets.empty() && packets.size() <= limits::kCodePackets);
  LEEWAY_ASSERT(out.size() <= kRowsMax && row + out.size() <= limits::kCodeParitiesMax);
  std::array<unsigned char, kRowsMax * limits::kCodePackets> factors;
  std::array<unsigned char, 32 * kRowsMax * limits::kCodePackets> tables;
  std::array<unsigned char*, limits::kCodePackets> sources;
  std::array<unsigned char*, kRowsMax> targets;
  // The last packet takes part as far as it goes.
  const auto sum = [&](std::size_t count, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    for (std::size_t r = 0; r < out.size(); ++r) {
      targets[r] = bytes_of(out[r].data()) + begin;
      if (count == 0) std::memset(targets[r], 0, end - begin);
      for (std::size_t i = 0; i < count; ++i)
        factors[r * count + i] = coefficient(row + static_cast<std::uint32_t>(r), i);
    }
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) sources[i] = bytes_of(packets[i].data()) + begin;
    const auto n = static_cast<int>(count);
    const auto rows = static_cast<int>(out.size());
    ec_init_tables(n, rows, factors.data(), tables.data());
    ec_encode_data(static_cast<int>(end - begin), n, rows, tables.data(), sources.data(),
                   targets.data());
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
  for (std::size_t b = 0; b < missing_; ++b) {
    std::uint8_t* const line = matrix_.data() + b * packets;
    const std::uint8_t* const factors = inverse_.data() + b * missing_;
    for (std::size_t i = 0; i < packets; ++i) {
      line[i] = 0;
      if (rows[i] != kPresent) continue;
      for (std::size_t a = 0; a < missing_; ++a)
        line[i] ^= gf_mul(factors[a], coefficient(rows[missing_at_[a]], i));
    }
    for (std::size_t a = 0; a < missing_; ++a) line[missing_at_[a]] = factors[a];
  }
}

// In strips, since what is computed lands where its parity lies.
void Recovery::run(std::span<const MutableByteSpan> packets, std::span<const std::uint8_t> rows,
                   std::size_t bytes, ByteSpan last_parity) {
  constexpr std::size_t kStrip = 512;
  LEEWAY_ASSERT(packets.size() <= kPackets && packets.size() == rows.size());
  make_matrix(packets.size(), rows);
  if (missing_ == 0) return;
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
