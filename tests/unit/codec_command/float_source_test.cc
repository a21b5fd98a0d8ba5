#include "codec/float_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace leeway::tools::codecs {
namespace {

using testing::HasSubstr;

class FloatSourceTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::vector<float>& values, std::size_t bytes_more = 0) const {
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
    file << std::string(bytes_more, 'x');
  }

  std::string path_ = testing::TempDir() + "/leeway_float_source_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FloatSourceTest, ReadsWhatTheFileHolds) {
  write({1.5f, -2.0f, 0x1p-140f});
  auto source = FloatSource::open(path_);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->bytes_total(), 12u);
  EXPECT_THAT(*source->next(), testing::ElementsAre(1.5f, -2.0f, 0x1p-140f));
  EXPECT_TRUE(source->next()->empty());
  EXPECT_EQ(source->bytes_read(), 12u);
}

TEST_F(FloatSourceTest, ReadsLongFilesPieceByPiece) {
  std::vector<float> values(3'000'000);
  std::iota(values.begin(), values.end(), 0.0f);
  write(values);
  auto source = FloatSource::open(path_);
  ASSERT_TRUE(source.ok());
  std::vector<float> read;
  int pieces = 0;
  for (auto piece = source->next(); !piece->empty(); piece = source->next(), ++pieces) {
    read.insert(read.end(), piece->begin(), piece->end());
  }
  EXPECT_EQ(read, values);
  EXPECT_GT(pieces, 1);
}

TEST_F(FloatSourceTest, RefusesSizesThatAreNoFloats) {
  write({1.0f}, 3);
  const auto source = FloatSource::open(path_);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(std::string(source.status().text()), HasSubstr("7 bytes are not a multiple of 4"));
}

TEST_F(FloatSourceTest, NamesWhatCannotBeOpened) {
  const auto source = FloatSource::open(path_ + "/nowhere");
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(std::string(source.status().text()), HasSubstr(path_ + "/nowhere"));
}

TEST_F(FloatSourceTest, ADirectoryIsNoFile) {
  auto source = FloatSource::open(testing::TempDir());
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(std::string(source->next().status().text()), HasSubstr("directory"));
}

}  // namespace
}  // namespace leeway::tools::codecs
