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

}  // namespace
}  // namespace leeway::tools
