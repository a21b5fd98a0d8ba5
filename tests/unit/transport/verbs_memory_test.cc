#include "transport/verbs/memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

class VerbsRegions : public testing::Test {
 protected:
  ibv_mr* add(ByteSpan memory) {
    if (refuse_) {
      errno = ENOMEM;
      return nullptr;
    }
    ibv_mr& region = handles_[next_];
    region.lkey = next_++;
    live_ += 1;
    EXPECT_FALSE(memory.empty());
    return &region;
  }

  bool refuse_ = false;
  std::uint32_t next_ = 1;
  int live_ = 0;
  std::map<std::uint32_t, ibv_mr> handles_;
  Bytes memory_ = Bytes(1000);
  ByteSpan all_{memory_};
};

TEST_F(VerbsRegions, GiveTheKeyOfTheSpanThatContainsThePiece) {
  Regions regions({[this](ByteSpan memory) { return add(memory); }, [this](ibv_mr*) { --live_; }});
  ASSERT_EQ(regions.add(all_.subspan(500, 100)), 0);
  ASSERT_EQ(regions.add(all_.subspan(100, 50)), 0);
  ASSERT_EQ(regions.add({}), 0);
  const auto key = [&](std::size_t at, std::size_t bytes) {
    return regions.key_of(&memory_[at], bytes).value_or(0);
  };
  EXPECT_EQ(key(500, 100), 1u);
  EXPECT_EQ(key(599, 1), 1u);
  EXPECT_EQ(key(100, 50), 2u);
  EXPECT_EQ(key(120, 10), 2u);
  EXPECT_EQ(key(99, 2), 0u);
  EXPECT_EQ(key(149, 2), 0u);
  EXPECT_EQ(key(150, 1), 0u);
  EXPECT_EQ(key(599, 2), 0u);
  EXPECT_EQ(key(0, 1000), 0u);
  EXPECT_EQ(key(700, static_cast<std::size_t>(-1)), 0u);
}

TEST_F(VerbsRegions, AreReleasedOnceEach) {
  {
    Regions regions(
        {[this](ByteSpan memory) { return add(memory); }, [this](ibv_mr*) { --live_; }});
    for (std::size_t at : {0, 200, 400}) ASSERT_EQ(regions.add(all_.subspan(at, 100)), 0);
    EXPECT_EQ(live_, 3);
    regions.drop(all_.subspan(200, 99));  // no such span
    EXPECT_EQ(live_, 3);
    regions.drop(all_.subspan(200, 100));
    regions.drop(all_.subspan(200, 100));
    EXPECT_EQ(live_, 2);
    EXPECT_FALSE(regions.key_of(&memory_[200], 1));
    EXPECT_TRUE(regions.key_of(&memory_[400], 100));
  }
  EXPECT_EQ(live_, 0);
}

TEST_F(VerbsRegions, SayWhyMemoryCannotBeRegistered) {
  Regions regions({[this](ByteSpan memory) { return add(memory); }, [this](ibv_mr*) { --live_; }});
  refuse_ = true;
  EXPECT_EQ(regions.add(all_), ENOMEM);
  EXPECT_FALSE(regions.key_of(memory_.data(), 1));
}

}  // namespace
}  // namespace leeway::transport
