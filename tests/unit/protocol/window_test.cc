#include "protocol/window.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(WindowBytes, FillNoMoreThanTheReceiversBuffer) {
  EXPECT_EQ(window_bytes(8 * kMiB, 1, false, 0), kMiB);
  EXPECT_EQ(window_bytes(2 * kMiB, 4, false, 0), kMiB / 2);
  EXPECT_EQ(window_bytes(2 * kMiB, 4, false, 8 * kMiB), kMiB / 2);
  EXPECT_EQ(window_bytes(8 * kMiB, 2, false, kMiB / 4), kMiB / 4);
}

// 10 Gb/s over 50 ms are 62.5 MB, but a window of 1 MiB would allow only 168 Mb/s.
TEST(WindowBytes, HoldALongLineWhereTheSenderIsPaced) {
  EXPECT_EQ(window_bytes(kMiB / 4, 1, true, 0), 64 * kMiB);
  EXPECT_EQ(window_bytes(kMiB / 4, 4, true, 0), 16 * kMiB);
  EXPECT_EQ(window_bytes(8 * kMiB, 4, true, kMiB), kMiB) << "as its user wants";
  EXPECT_EQ(window_bytes(8 * kMiB, 4, true, 256 * kMiB), 16 * kMiB);
  EXPECT_EQ(window_bytes(kMiB, 0, true, 0), 64 * kMiB) << "of a rank alone";
}

}  // namespace
}  // namespace leeway::protocol
