// Compares every CRC kernel with a computation by the definition, one bit at a time.
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c_polynomial.h"
#include "base/philox.h"

namespace leeway {
namespace {

std::uint32_t bit_by_bit(ByteSpan bytes, std::uint32_t crc = 0) {
  std::uint32_t state = ~crc;
  for (const std::byte byte : bytes) {
    state ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~state;
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(keyed_hash(5, static_cast<std::uint32_t>(i), 0, 0, 0));
  }
  return bytes;
}

ByteSpan bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, GivesThePublishedAnswers) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  // The test vectors of RFC 3720, appendix B.4.
  std::array<std::byte, 32> block{};
  EXPECT_EQ(crc32c(block), 0x8A9136AAu);
  block.fill(std::byte{0xFF});
  EXPECT_EQ(crc32c(block), 0x62A8AB43u);
  for (std::size_t i = 0; i < 32; ++i) block[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(block), 0x46DD794Eu);
}

TEST(Crc32c, OfNothingIsWhatItExtends) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c({}, 0x12345678u), 0x12345678u);
}

TEST(Crc32c, ExtendsOverEverySplit) {
  const auto bytes = random_bytes(600);
  const std::uint32_t whole = bit_by_bit(bytes);
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    const ByteSpan all(bytes);
    ASSERT_EQ(crc32c(all.subspan(split), crc32c(all.first(split))), whole) << split;
  }
}

class Crc32cKernels : public testing::TestWithParam<internal::Crc32cKernel> {};

TEST_P(Crc32cKernels, MatchTheDefinitionAtEverySizeUpTo300) {
  const auto bytes = random_bytes(300);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const ByteSpan part = ByteSpan(bytes).first(size);
    ASSERT_EQ(GetParam().run(part, 0), bit_by_bit(part)) << size;
    ASSERT_EQ(GetParam().run(part, 0xDEADBEEF), bit_by_bit(part, 0xDEADBEEF)) << size;
  }
}

TEST_P(Crc32cKernels, MatchTheDefinitionAtEveryAlignment) {
  const auto bytes = random_bytes(1024);
  for (std::size_t offset = 0; offset < 64; ++offset) {
    for (const std::size_t size : {63, 127, 255, 256, 257, 320, 511, 512, 831}) {
      const ByteSpan part = ByteSpan(bytes).subspan(offset, size);
      ASSERT_EQ(GetParam().run(part, 7), bit_by_bit(part, 7)) << offset << " " << size;
    }
  }
}

TEST_P(Crc32cKernels, MatchTheDefinitionOnDatagramsAndBeyond) {
  for (const std::size_t size : {1356, 1408, 4096, 8948, 9216, 65537, 1'000'003}) {
    const auto bytes = random_bytes(size);
    EXPECT_EQ(GetParam().run(bytes, 0), bit_by_bit(bytes)) << size;
  }
}

TEST_P(Crc32cKernels, NoticeEverySingleBitError) {
  auto bytes = random_bytes(1408);
  const std::uint32_t right = GetParam().run(bytes, 0);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(GetParam().run(bytes, 0), right) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

INSTANTIATE_TEST_SUITE_P(OfThisProcessor, Crc32cKernels, testing::ValuesIn([] {
                           const auto kernels = internal::crc32c_kernels();
                           return std::vector(kernels.begin(), kernels.end());
                         }()),
                         [](const auto& kernel) { return std::string(kernel.param.name); });

TEST(Crc32cPolynomial, PowersOfXAreTheChecksumsRegister) {
  // x^32 mod P is P itself without its leading term.
  EXPECT_EQ(internal::x_to_the(0), 0x80000000u);
  EXPECT_EQ(internal::x_to_the(31), 1u);
  EXPECT_EQ(internal::x_to_the(32), internal::kCrc32cPolynomial);
  // The polynomial is (x + 1) times a primitive polynomial of degree 31, so x^(2^31 - 1) is x^0
  // again. The period of the powers divides 2^31 - 1, which is prime. It is not 1, because x^1 is
  // not x^0.
  EXPECT_NE(internal::x_to_the(1), internal::x_to_the(0));
}

}  // namespace
}  // namespace leeway
