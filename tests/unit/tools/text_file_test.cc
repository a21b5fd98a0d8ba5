#include "text_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace leeway::tools {
namespace {

TEST(WriteText, ReplacesWhatTheFileHeld) {
  const std::string path = testing::TempDir() + "/leeway_text_file";
  ASSERT_TRUE(write_text(path, "a long first version\n").ok());
  ASSERT_TRUE(write_text(path, "second\n").ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "second\n");
  std::filesystem::remove(path);
}

TEST(WriteText, UnwritablePathIsNamed) {
  const Status status = write_text("/nonexistent/rows.json", "[]");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("/nonexistent/rows.json"), std::string_view::npos);
}

TEST(CheckWritable, LeavesTheFileAloneAndNamesOneThatCannotBe) {
  const std::string path = testing::TempDir() + "/leeway_text_file";
  ASSERT_TRUE(write_text(path, "kept\n").ok());
  EXPECT_TRUE(check_writable(path).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
  std::filesystem::remove(path);
  EXPECT_TRUE(check_writable("").ok());
  EXPECT_TRUE(check_writable("-").ok());
  EXPECT_STREQ(check_writable("/nonexistent/rows.json").c_str(),
               "--json /nonexistent/rows.json: No such file or directory");
}

}  // namespace
}  // namespace leeway::tools
