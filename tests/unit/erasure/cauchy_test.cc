// Compares the erasure code with independent arithmetic of this test, and tries all kinds of losses
// that the code must repair.
#include "erasure/cauchy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "unit/erasure/galois.h"

namespace leeway::erasure {
namespace {

// The packets that one erasure code covers, and their parities. The last packet may be shorter.
struct Code {
  Code(std::size_t count, std::size_t full_bytes, std::size_t last_bytes, unsigned seed)
      : bytes(full_bytes), packets(count), random(seed) {
    for (std::size_t i = 0; i < count; ++i) {
      packets[i].resize(i + 1 < count ? bytes : last_bytes);
      for (std::byte& value : packets[i]) value = static_cast<std::byte>(random());
    }
  }
  std::vector<std::byte> parity(std::uint32_t row) const {
    std::vector<std::byte> out(bytes, std::byte{0x5A});
    const std::vector<ByteSpan> sources(packets.begin(), packets.end());
    encode(sources, row, std::array{MutableByteSpan(out)});
    return out;
  }
  // Returns `count` different numbers below `below`.
  std::vector<std::uint32_t> draw(std::size_t count, std::size_t below) {
    std::vector<std::uint32_t> all(below);
    for (std::size_t i = 0; i < below; ++i) all[i] = static_cast<std::uint32_t>(i);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(count);
    return all;
  }
  // Returns true if all packets are recovered after those in `lost` were lost and the parity rows
  // in `came` arrived.
  bool recovers(const std::vector<std::uint32_t>& lost, const std::vector<std::uint32_t>& came) {
    auto places = packets;
    std::vector<std::uint8_t> rows(packets.size(), Recovery::kPresent);
    std::vector<std::byte> last_parity;
    for (std::size_t m = 0; m < lost.size(); ++m) {
      rows[lost[m]] = static_cast<std::uint8_t>(came[m]);
      std::vector<std::byte> held = parity(came[m]);
      if (places[lost[m]].size() == bytes) {
        places[lost[m]] = held;
      } else {
        last_parity = held;
        std::fill(places[lost[m]].begin(), places[lost[m]].end(), std::byte{0xEE});
      }
    }
    const std::vector<MutableByteSpan> spans(places.begin(), places.end());
    recovery.run(spans, rows, bytes, last_parity);
    return places == packets;
  }

  std::size_t bytes;
  std::vector<std::vector<std::byte>> packets;
  std::mt19937 random;
  Recovery recovery;
};

TEST(Cauchy, ParityIsTheSumThatItsMatrixSays) {
  for (const std::size_t count : {1, 2, 17, 128}) {
    const Code code(count, 100, 37, 5);
    for (const std::uint32_t row : {0u, 1u, 30u, limits::kCodeParitiesMax - 1}) {
      const std::vector<std::byte> parity = code.parity(row);
      for (std::size_t at = 0; at < parity.size(); ++at) {
        unsigned sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
          if (at >= code.packets[i].size()) continue;
          sum ^= times(inverse((limits::kCodePackets + row) ^ static_cast<unsigned>(i)),
                       std::to_integer<unsigned>(code.packets[i][at]));
        }
        ASSERT_EQ(std::to_integer<unsigned>(parity[at]), sum) << count << ", " << row << ", " << at;
      }
    }
  }
}

TEST(Cauchy, RowsMadeTogetherAreThoseMadeAlone) {
  const Code code(23, 700, 123, 9);
  std::vector<std::vector<std::byte>> rows(4, std::vector<std::byte>(700));
  const std::vector<ByteSpan> sources(code.packets.begin(), code.packets.end());
  encode(sources, 5, std::vector<MutableByteSpan>(rows.begin(), rows.end()));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(rows[i], code.parity(5 + i)) << i;
}

TEST(Cauchy, EveryPairOfPacketsIsRecoveredFromEveryPairOfRows) {
  Code code(7, 48, 20, 1);
  for (std::uint32_t a = 0; a < 7; ++a) {
    for (std::uint32_t b = a + 1; b < 7; ++b) {
      for (std::uint32_t row = 0; row + 1 < limits::kCodeParitiesMax; ++row)
        ASSERT_TRUE(code.recovers({a, b}, {row + 1, row})) << a << ", " << b << ", " << row;
    }
  }
}

// Loses random packets, up to as many as there can be parities. Lengths of packets are near those
// of vectors and strips, where kernels could go wrong.
TEST(Cauchy, WhateverIsLostIsRecovered) {
  unsigned seed = 0;
  for (const std::size_t count : {2, 5, 33, 128}) {
    for (const std::size_t bytes : {1, 31, 64, 255, 256, 257, 1416, 8900}) {
      for (const std::size_t last : {std::size_t{1}, (bytes + 1) / 2, bytes}) {
        Code code(count, bytes, last, ++seed);
        const std::size_t most = std::min<std::size_t>(count, limits::kCodeParitiesMax);
        for (const std::size_t missing : {std::size_t{1}, (most + 1) / 2, most}) {
          const auto lost = code.draw(missing, count);
          const auto rows = code.draw(missing, limits::kCodeParitiesMax);
          ASSERT_TRUE(code.recovers(lost, rows)) << count << " packets of " << bytes << ", last "
                                                 << last << ", " << missing << " lost";
        }
      }
    }
  }
}

TEST(Cauchy, NothingIsTouchedWhereNothingIsMissing) {
  Code code(9, 64, 10, 3);
  EXPECT_TRUE(code.recovers({}, {}));
}

// Compares shortfall() with a count over random codes: the share of codes that lose more packets
// than they have parities.
TEST(Shortfall, IsHowOftenMoreIsLostThanThereIsParity) {
  std::mt19937_64 random(11);
  constexpr int kTrials = 40'000;
  for (const double loss : {0.001, 0.01, 0.05, 0.1, 0.2}) {
    for (const std::uint32_t parities : {0u, 1u, 4u, 10u, 20u}) {
      std::binomial_distribution<int> lost(static_cast<int>(62 + parities), loss);
      int count = 0;
      for (int i = 0; i < kTrials; ++i) count += lost(random) > static_cast<int>(parities);
      const double expected = shortfall(62, parities, loss);
      const double error = 4.0 * std::sqrt(std::max(expected, 1.0 / kTrials) / kTrials);
      EXPECT_NEAR(static_cast<double>(count) / kTrials, expected, error)
          << loss << ", " << parities;
    }
  }
}

// Losses come in bursts of geometric length that begin at random. shortfall() must account for them
// by their dispersion.
TEST(Shortfall, HeedsBursts) {
  std::mt19937_64 random(12);
  constexpr int kTrials = 40'000;
  constexpr double kBurst = 4.0;
  constexpr double kDispersion = 2.0 * kBurst - 1.0;
  for (const double loss : {0.01, 0.05}) {
    for (const std::uint32_t parities : {2u, 5u, 10u, 15u}) {
      std::poisson_distribution<int> bursts((62 + parities) * loss / kBurst);
      std::geometric_distribution<int> more(1.0 / kBurst);
      int count = 0;
      for (int i = 0; i < kTrials; ++i) {
        int lost = 0;
        for (int n = bursts(random); n > 0; --n) lost += 1 + more(random);
        count += lost > static_cast<int>(parities);
      }
      // The prediction has the right mean and variance but another shape, so the tolerance is wide.
      const double share = static_cast<double>(count) / kTrials;
      const double expected = shortfall(62, parities, loss, kDispersion);
      EXPECT_LE(share, 1.5 * expected) << loss << ", " << parities;
      EXPECT_GE(share, expected / 3) << loss << ", " << parities;
      if (parities > 2 * 62 * loss) {  // in the tail
        EXPECT_GT(expected, shortfall(62, parities, loss));
      }
    }
  }
}

TEST(Shortfall, NeverOccursWithoutLossAndNearlyAlwaysWithTooMuch) {
  EXPECT_EQ(shortfall(64, 0, 0.0), 0.0);
  EXPECT_GT(shortfall(64, 48, 0.9), 0.99);
  EXPECT_GT(shortfall(64, 48, 1.0), 0.99);
  EXPECT_GT(shortfall(64, 10, 0.1), shortfall(64, 11, 0.1));
  EXPECT_NEAR(shortfall(64, 0, 0.01), 1.0 - std::pow(0.99, 64), 1e-12);
}

}  // namespace
}  // namespace leeway::erasure
