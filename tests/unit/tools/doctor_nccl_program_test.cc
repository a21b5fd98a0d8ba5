#include "doctor/nccl_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace leeway::tools::doctor {
namespace {

// Returns this test program, which calls no function of NCCL.
std::vector<std::byte> own_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

TEST(NcclProgram, OtherFilesAreNone) {
  EXPECT_FALSE(nccl_use_of({}).ok());
  const std::string script = "#!/bin/sh\n";
  EXPECT_FALSE(nccl_use_of(std::as_bytes(std::span(script))).ok());
  auto program = own_program();
  program[4] = std::byte{1};  // 32 bits
  EXPECT_FALSE(nccl_use_of(program).ok());
  program = own_program();
  program[5] = std::byte{2};  // most significant byte first
  EXPECT_FALSE(nccl_use_of(program).ok());
}

// The reader stops at the end of a file that was cut off.
TEST(NcclProgram, BrokenFilesAreReadToTheirEnd) {
  const auto program = own_program();
  for (std::size_t size = 0; size < 5000; size += 7) {
    const std::vector<std::byte> cut(program.begin(), program.begin() + static_cast<long>(size));
    const auto use = nccl_use_of(cut);
    EXPECT_TRUE(!use.ok() || *use != NcclUse::needed);
  }
}

// Offsets and counts in the header may point anywhere.
TEST(NcclProgram, BrokenHeadersAreHarmless) {
  auto program = own_program();
  program.resize(std::min<std::size_t>(program.size(), 20'000));
  for (std::size_t at = 24; at < 64; ++at) {
    for (const int value : {0, 1, 0x7F, 0xFF}) {
      auto broken = program;
      broken[at] = static_cast<std::byte>(value);
      const auto use = nccl_use_of(broken);
      EXPECT_TRUE(!use.ok() || *use != NcclUse::needed);
    }
  }
}

}  // namespace
}  // namespace leeway::tools::doctor
