#include "interop/nccl/debug.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace leeway::nccl {
namespace {

TEST(NcclDebug, LevelsAreNccls) {
  EXPECT_EQ(parse_debug_level("INFO"), DebugLevel::info);
  EXPECT_EQ(parse_debug_level("warn"), DebugLevel::warn);
  EXPECT_EQ(parse_debug_level("VERSION"), DebugLevel::version);
  EXPECT_EQ(parse_debug_level("loud"), DebugLevel::none);
  EXPECT_EQ(parse_debug_level(""), DebugLevel::none);
}

TEST(NcclDebug, FileNamesHaveHostAndProcess) {
  EXPECT_EQ(debug_file_name("/tmp/%h.%p.log", "node7", 42), "/tmp/node7.42.log");
  EXPECT_EQ(debug_file_name("100%%%x%", "node7", 42), "100%%x%");
}

TEST(NcclDebug, TheLastErrorIsKept) {
  EXPECT_EQ(failed_with(kInvalidArgument, "Send : invalid root %d", 9), kInvalidArgument);
  EXPECT_STREQ(last_error(), "Send : invalid root 9");
  EXPECT_EQ(failed(Status::error(StatusCode::kPeerLost, "rank 2 is dead"), "AllReduce"),
            kRemoteError);
  EXPECT_STREQ(last_error(), "AllReduce : rank 2 is dead");
  (void)failed(kInternalError, std::string(5000, 'x'));
  EXPECT_EQ(std::string(last_error()).size(), 1023U);
}

// A line as long as the buffer once ended in a zero instead of a line feed.
TEST(NcclDebug, LongLinesAreWhole) {
  const std::string name = testing::TempDir() + "nccl_debug_" + std::to_string(::getpid());
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_DEBUG_FILE", name.c_str(), 1);
  reread_debug_variables();
  for (const std::size_t bytes : {10, 970, 1023, 1024, 5000}) warn(std::string(bytes, 'x') + "end");
  ::unsetenv("NCCL_DEBUG");
  ::unsetenv("NCCL_DEBUG_FILE");
  reread_debug_variables();
  std::ifstream file(name);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    EXPECT_EQ(line.find('\0'), std::string::npos);
    EXPECT_TRUE(line.ends_with("xend")) << line.size();
  }
  EXPECT_EQ(lines, 5);
  ::unlink(name.c_str());
}

TEST(NcclDebug, VersionTellsWhoAnswers) {
  ::setenv("NCCL_DEBUG", "VERSION", 1);
  reread_debug_variables();
  ::testing::internal::CaptureStdout();
  say_version(version_code(2, 28, 9));
  info("not at this level");
  const std::string said = ::testing::internal::GetCapturedStdout();
  ::unsetenv("NCCL_DEBUG");
  reread_debug_variables();
  EXPECT_NE(said.find(" NCCL version 2.28.9, by Leeway "), std::string::npos) << said;
  EXPECT_EQ(said.find("not at this level"), std::string::npos);
}

TEST(NcclDebug, TextsAreOfTheVersion) {
  EXPECT_STREQ(text_of(8, version_code(2, 28, 9)), "unknown result code");
  EXPECT_STREQ(text_of(8, version_code(2, 30, 0)), "timeout");
  EXPECT_EQ(code_of(StatusCode::kDeadlineExceeded, version_code(2, 28, 9)), kRemoteError);
  EXPECT_EQ(code_of(StatusCode::kDeadlineExceeded, version_code(2, 30, 0)), kTimeout);
}

}  // namespace
}  // namespace leeway::nccl
