#include "near/arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace leeway::near {
namespace {

constexpr const char* kFolder = "/dev/shm";

ArenaName name_of_test() {
  ArenaName name{};
  const auto process = static_cast<std::uint64_t>(::getpid());
  for (std::size_t i = 0; i < 8; ++i) name[i] = static_cast<std::byte>(process >> (8 * i));
  return name;
}

TEST(Shape, LeavesRoomInTheMemoryOfAContainer) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const Shape shape = Shape::of(ranks);
    EXPECT_LE(shape.bytes(), std::size_t{13} << 20) << ranks;
    EXPECT_GE(shape.slot_bytes, 4096u);
    EXPECT_EQ(shape.slot_bytes % 4096, 0u);
  }
}

TEST(ArenaFile, EachRankSeesWhatTheOthersWriteInTheirParts) {
  const Shape shape{2, 4096};
  const ArenaName name = name_of_test();
  const auto first = ArenaFile::create(kFolder, name, shape, 0);
  ASSERT_TRUE(first.ok()) << first.status().c_str();
  const auto second = ArenaFile::open(kFolder, name, shape, 1);
  ASSERT_TRUE(second.ok()) << second.status().c_str();
  ArenaFile::remove_name(kFolder, name);
  EXPECT_FALSE(std::filesystem::exists(std::string(kFolder) + "/" + file_name(name)));
  second->arena().own_line().progress = 5;
  second->arena().own_slot(2)[9] = std::byte{3};
  EXPECT_EQ(first->arena().line(1).progress, 5u);
  EXPECT_EQ(first->arena().slot(1, 2)[9], std::byte{3});
  EXPECT_EQ(first->arena().line(0).progress, 0u);
}

TEST(ArenaFile, ARankCannotWriteThePartsOfOthers) {
  const Shape shape{2, 4096};
  const ArenaName name = name_of_test();
  const auto file = ArenaFile::create(kFolder, name, shape, 1);
  ASSERT_TRUE(file.ok());
  ArenaFile::remove_name(kFolder, name);
  const Arena arena = file->arena();
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "ab", 2), 2);
  // read() into memory that this process may not write fails with EFAULT.
  EXPECT_EQ(::read(ends[0], const_cast<Line*>(&arena.line(0)), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(::read(ends[0], &arena.own_line(), 1), 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Arena, AnyNumberIsASlot) {
  const Shape shape{1, 4096};
  const auto memory = Mapping::anonymous(shape.bytes());
  const Arena arena(memory->data(), shape, 0);
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{4}, ~std::uint64_t{0}})
    EXPECT_TRUE(memory->contains({arena.slot(0, number), 4096}));
  EXPECT_EQ(arena.slot(0, 1), arena.slot(0, 4));
}

}  // namespace
}  // namespace leeway::near
