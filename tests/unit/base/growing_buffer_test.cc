#include "base/growing_buffer.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway {
namespace {

class Diary final : public MemoryWatcher {
 public:
  void on_allocated(ByteSpan memory) override { known_.push_back(memory); }
  void before_freed(ByteSpan memory) override {
    ASSERT_EQ(known_.size(), 1u);
    EXPECT_EQ(known_.back().data(), memory.data());
    EXPECT_EQ(known_.back().size(), memory.size());
    known_.pop_back();
  }
  const std::vector<ByteSpan>& known() const { return known_; }

 private:
  std::vector<ByteSpan> known_;
};

TEST(GrowingBuffer, KeepsItsLargestSize) {
  GrowingBuffer buffer;
  buffer.reserve(1000);
  const std::byte* const first = buffer.data();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % GrowingBuffer::kAlign, 0u);
  buffer.reserve(10);
  EXPECT_EQ(buffer.data(), first);
  EXPECT_EQ(buffer.capacity(), 1000u);
}

TEST(GrowingBuffer, TellsItsWatcherOfWhatItHasNow) {
  Diary diary;
  GrowingBuffer buffer(&diary);
  EXPECT_TRUE(diary.known().empty());
  for (const std::size_t bytes : {100, 50, 4000}) {
    buffer.reserve(bytes);
    ASSERT_EQ(diary.known().size(), 1u);
    EXPECT_EQ(diary.known().back().data(), buffer.data());
    EXPECT_EQ(diary.known().back().size(), buffer.capacity());
  }
}

}  // namespace
}  // namespace leeway
