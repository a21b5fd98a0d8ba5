#include "link/serializer.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(Serializer, TakesTheBitsDividedByTheRate) {
  Serializer line(1'000'000'000);
  EXPECT_EQ(line.send(100, 1500), 100 + 12'000);
}

TEST(Serializer, SendsOneAfterTheOther) {
  Serializer line(1'000'000'000);
  EXPECT_EQ(line.send(0, 1000), 8'000);
  EXPECT_EQ(line.start(10), 8'000);
  EXPECT_EQ(line.send(10, 500), 12'000);
  EXPECT_EQ(line.start(20'000), 20'000);
  EXPECT_EQ(line.send(20'000, 500), 24'000);
}

// At 3 Gb/s 8 bits take 2 2/3 ns.
TEST(Serializer, CarriesPartsOfANanosecond) {
  Serializer line(3'000'000'000);
  EXPECT_EQ(line.send(0, 1), 3);
  EXPECT_EQ(line.send(0, 1), 6);  // 5 1/3
  EXPECT_EQ(line.send(0, 1), 8);
  EXPECT_EQ(line.send(8, 1), 11);  // no fraction was left over
}

TEST(Serializer, CarriesThePartIntoAPacketThatComesWithinIt) {
  Serializer line(3'000'000'000);
  EXPECT_EQ(line.send(0, 1), 3);  // until 2 2/3
  EXPECT_FALSE(line.idle(2));
  EXPECT_EQ(line.send(2, 1), 6);
  EXPECT_EQ(line.send(5, 1), 8);
}

TEST(Serializer, ForgetsThePartAfterAPause) {
  Serializer line(3'000'000'000);
  EXPECT_EQ(line.send(0, 1), 3);
  EXPECT_TRUE(line.idle(3));
  EXPECT_EQ(line.send(3, 1), 6);
}

TEST(Serializer, DoesNotDriftOverAMillionPackets) {
  // kRate has no common divisor with the other numbers, so nearly all packets end between whole ns.
  constexpr std::uint64_t kRate = 99'999'999'977;
  Serializer line(kRate);
  std::int64_t end = 0;
  for (int i = 0; i < 1'000'000; ++i) end = line.send(0, 1447);
  // The exact end is 1447 * 8 * 10^15 / kRate = 115,760,000,026.6 ns.
  const auto exact =
      (__extension__ static_cast<unsigned __int128>(1447) * 8'000'000'000'000'000 + kRate - 1) /
      kRate;
  EXPECT_EQ(end, static_cast<std::int64_t>(exact));
}

TEST(Serializer, HoldsTheLargestPacketOnTheSlowestLine) {
  Serializer line(1);
  EXPECT_EQ(line.send(0, Serializer::kBytesMax), 8'589'934'592'000'000'000);
}

}  // namespace
}  // namespace leeway::sim
