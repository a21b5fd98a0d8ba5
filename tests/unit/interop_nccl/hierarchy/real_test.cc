#include "interop/nccl/hierarchy/real.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace leeway::nccl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class NcclReal : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("LD_LIBRARY_PATH");
  }
  std::string file(const char* name) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "no library";
    return path;
  }
  const std::string folder_ = testing::TempDir() + "nccl_real_test";
};

TEST_F(NcclReal, IsLookedForInTheLoadersPath) {
  const std::string path = file("libnccl.so.2");
  ::setenv("LD_LIBRARY_PATH", ("/nowhere:" + folder_).c_str(), 1);
  EXPECT_THAT(real_nccl_places(), Contains(path));
}

TEST_F(NcclReal, IsNotTheDropIn) {
  const std::string path = file("libnccl.so.2");
  file("libleeway_nccl.so.0");
  ::setenv("LD_LIBRARY_PATH", folder_.c_str(), 1);
  EXPECT_THAT(real_nccl_places(), Not(Contains(path)));
}

TEST_F(NcclReal, WhatIsNoLibraryIsNamed) {
  const std::string path = file("libnccl.so.2");
  const auto opened = RealNccl::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr(path));
}

TEST_F(NcclReal, ALibraryOfOtherThingsIsNone) {
  const auto opened = RealNccl::open("libm.so.6");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("no NCCL"));
}

TEST_F(NcclReal, NoneIsNone) {
  EXPECT_FALSE(RealNccl::open("none").ok());
}

}  // namespace
}  // namespace leeway::nccl
