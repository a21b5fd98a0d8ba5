// Tests which packets and parities belong to which code (WIRE 2.10).
#include "wire/code_grid.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::wire {
namespace {

TEST(CodeGrid, EveryPacketIsInOneCodeThatIsNotTooLong) {
  for (const std::uint32_t packets : {1u, 5u, 127u, 128u, 129u, 256u, 733u, 4096u}) {
    const CodeGrid grid(packets);
    std::vector<int> seen(packets);
    for (std::uint32_t code = 0; code < grid.codes(); ++code) {
      EXPECT_GE(grid.size(code), 1u);
      EXPECT_LE(grid.size(code), limits::kCodePackets);
      for (std::uint32_t n = 0; n < grid.size(code); ++n) {
        const PacketIndex index = grid.packet(code, n);
        ASSERT_LT(index.value, packets);
        EXPECT_EQ(grid.code_of(index), code);
        ++seen[index.value];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(packets, 1));
  }
}

// The last packet may be shorter, and erasure::Recovery takes a short packet only in the last
// place.
TEST(CodeGrid, TheLastPacketIsTheLastOfItsCode) {
  for (std::uint32_t packets = 1; packets < 300; ++packets) {
    const CodeGrid grid(packets);
    const std::uint32_t code = grid.code_of({packets - 1});
    EXPECT_EQ(grid.packet(code, grid.size(code) - 1).value, packets - 1);
  }
}

TEST(CodeGrid, ParitiesGoRoundTheCodes) {
  const CodeGrid grid(2 * limits::kCodePackets + 2);
  ASSERT_EQ(grid.codes(), 3u);
  EXPECT_EQ(grid.parity(0), (ParityPlace{0, 0}));
  EXPECT_EQ(grid.parity(2), (ParityPlace{2, 0}));
  EXPECT_EQ(grid.parity(3), (ParityPlace{0, 1}));
  EXPECT_EQ(grid.parity(grid.parities_max() - 1), (ParityPlace{2, limits::kCodeParitiesMax - 1}));
}

}  // namespace
}  // namespace leeway::wire
