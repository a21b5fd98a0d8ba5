#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "interop/nccl/staged.h"

namespace leeway::nccl {
namespace {

constexpr int kSize = 3;

void* at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // never followed
}

Operation operation(Kind kind, std::size_t count, Rank peer = 0) {
  Operation out;
  out.kind = kind;
  out.count = count;
  out.peer = peer;
  out.send = kind == Kind::recv ? nullptr : at(1 << 20);
  out.receive = kind == Kind::send ? nullptr : at(std::uintptr_t{1} << 40);
  return out;
}

// Returns how many bytes are copied from or to each address at which a row begins.
std::map<std::uintptr_t, std::size_t> touched(const std::vector<StagedPart>& parts, bool input) {
  std::map<std::uintptr_t, std::size_t> rows;
  for (const StagedPart& part : parts) {
    for (const device::Copy& copy : input ? part.copies.input : part.copies.output) {
      EXPECT_LE(copy.offset + copy.rows * copy.bytes, part.copies.staging_bytes);
      for (std::size_t row = 0; row < copy.rows; ++row)
        rows[copy.memory + row * copy.pitch] += copy.bytes;
    }
  }
  return rows;
}

// Expects that rows follow each other from `begin` on, without gap or overlap.
void expect_covers(const std::map<std::uintptr_t, std::size_t>& rows, std::uintptr_t begin,
                   std::size_t bytes) {
  std::uintptr_t next = begin;
  for (const auto& [address, length] : rows) {
    EXPECT_EQ(address, next);
    next = address + length;
  }
  EXPECT_EQ(next, begin + bytes);
}

TEST(NcclCut, EveryByteIsCopiedOnce) {
  constexpr std::uintptr_t kSend = 1 << 20;
  constexpr std::uintptr_t kReceive = std::uintptr_t{1} << 40;
  const struct {
    Kind kind;
    std::size_t input_blocks;
    std::size_t output_blocks;
  } kKinds[] = {{Kind::all_reduce, 1, 1},     {Kind::reduce_scatter, kSize, 1},
                {Kind::all_gather, 1, kSize}, {Kind::all_to_all, kSize, kSize},
                {Kind::gather, 1, kSize},     {Kind::scatter, kSize, 1},
                {Kind::reduce, 1, 1},         {Kind::broadcast, 1, 1}};
  for (const auto& one : kKinds) {
    for (const std::size_t count : {1, 1000, 100'003, 5'000'001}) {
      const Operation whole = operation(one.kind, count, 1);
      const auto parts = cut(whole, 1, kSize);
      expect_covers(touched(parts, true), kSend, one.input_blocks * count * sizeof(float));
      expect_covers(touched(parts, false), kReceive, one.output_blocks * count * sizeof(float));
    }
  }
}

// Roots and other ranks have different memory, but must cut alike.
TEST(NcclCut, AllRanksCutAlike) {
  for (int kind = 0; kind < kKindCount; ++kind) {
    const Operation root = operation(static_cast<Kind>(kind), 3'000'000, 0);
    Operation other = root;
    other.type = DataType::f32;
    const auto at_root = cut(root, 0, kSize);
    const auto elsewhere = cut(other, 2, kSize);
    ASSERT_EQ(at_root.size(), elsewhere.size());
    for (std::size_t i = 0; i < at_root.size(); ++i)
      EXPECT_EQ(at_root[i].pieces[0].operation.count, elsewhere[i].pieces[0].operation.count);
  }
}

TEST(NcclCut, SmallOnesStayWhole) {
  EXPECT_EQ(cut(operation(Kind::all_reduce, 16'384), 0, kSize).size(), 1U);  // 64 KiB
  EXPECT_EQ(cut(operation(Kind::all_gather, 8192), 0, 8).size(), 1U);
}

TEST(NcclCut, LargeOnesHavePartsThatOverlap) {
  const auto parts = cut(operation(Kind::all_reduce, std::size_t{64} << 20), 0, kSize);
  EXPECT_EQ(parts.size(), 64U);
  EXPECT_EQ(parts[0].copies.staging_bytes, std::size_t{4} << 20);
}

TEST(NcclCut, WhatTheRootBroadcastsInPlaceStaysThere) {
  Operation one = operation(Kind::broadcast, 10);
  one.receive = const_cast<void*>(one.send);
  EXPECT_TRUE(cut(one, 0, kSize)[0].copies.output.empty());
}

TEST(NcclCut, FactorIsReadOnceWithTheFirstPart) {
  Operation one = operation(Kind::all_reduce, 1'000'000);
  one.factor = at(std::uintptr_t{1} << 50);
  const auto parts = cut(one, 0, kSize);
  ASSERT_GT(parts.size(), 1U);
  EXPECT_EQ(parts[0].copies.input.size(), 2U);
  EXPECT_NE(parts[0].factor_at, StagedPart::kNone);
  EXPECT_EQ(parts[1].factor_at, StagedPart::kNone);
}

// The peer may have the message in another group or in none, so its length alone must decide the
// cut.
TEST(NcclCut, MessagesAreCutTheSameInAndOutOfGroups) {
  const Operation large = operation(Kind::send, 3'000'000, 1);
  const Operation none = operation(Kind::recv, 0, 1);
  const std::vector<Operation> group{large, none, large};
  const StagedPart together = cut_messages(group);
  const auto alone = cut(large, 0, kSize);
  ASSERT_EQ(together.pieces.size(), 2 * alone.size() + 1);
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_EQ(together.pieces[i].operation.count, alone[i].pieces[0].operation.count);
  expect_covers(touched(alone, true), 1 << 20, large.count * sizeof(float));
}

}  // namespace
}  // namespace leeway::nccl
