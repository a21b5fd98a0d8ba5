#include "transport/shm/memory_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace leeway::transport {
namespace {

class MemoryFiles : public ::testing::Test {
 protected:
  MemoryFiles() { std::filesystem::create_directory(folder_); }
  ~MemoryFiles() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = "/dev/shm/leeway-files-test-" + std::to_string(::getpid());
};

TEST_F(MemoryFiles, AreTheSamePagesForWhoOpensThem) {
  const auto file = MemoryFile::create(folder_, "one", 8192);
  ASSERT_TRUE(file.ok()) << file.status().c_str();
  const auto own = file->map(4096, 4096);
  ASSERT_TRUE(own.ok());
  const auto opened = MemoryFile::open(folder_, "one", 8192);
  ASSERT_TRUE(opened.ok()) << opened.status().c_str();
  const auto read = opened->map_to_read();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->data()[5000], std::byte{0});
  own->data()[5000] = std::byte{7};
  EXPECT_EQ(read->data()[5000], std::byte{7});
}

TEST_F(MemoryFiles, OfAProcessThatWasKilledAreRemovedByTheNext) {
  const auto living = MemoryFile::create(folder_, "leeway-living", 4096);
  ASSERT_TRUE(living.ok()) << living.status().c_str();
  std::ofstream(folder_ + "/others").put('x');
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = MemoryFile::create(folder_, "leeway-dead", 4096);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(std::filesystem::exists(folder_ + "/leeway-dead"));
  MemoryFile::remove_stale(folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/leeway-dead"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/leeway-living"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/others"));
  MemoryFile::remove_name(folder_, "leeway-living");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/leeway-living"));
}

TEST_F(MemoryFiles, ArePrivateAndNewEachTime) {
  ASSERT_TRUE(MemoryFile::create(folder_, "one", 4096).ok());
  struct stat facts {};
  ASSERT_EQ(::stat((folder_ + "/one").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  EXPECT_EQ(MemoryFile::create(folder_, "one", 4096).status().code(), StatusCode::kUnsupported);
  MemoryFile::remove_name(folder_, "one");
  MemoryFile::remove_name(folder_, "one");
  EXPECT_TRUE(MemoryFile::create(folder_, "one", 4096).ok());
}

TEST_F(MemoryFiles, OfAnotherSizeOrKindAreRefused) {
  ASSERT_TRUE(MemoryFile::create(folder_, "one", 4096).ok());
  EXPECT_EQ(MemoryFile::open(folder_, "none", 4096).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(MemoryFile::open(folder_, "one", 8192).status().code(), StatusCode::kMismatch);
  std::ofstream(folder_ + "/text").close();
  std::filesystem::resize_file(folder_ + "/text", 4096);  // no pages stand behind it
  std::filesystem::permissions(folder_ + "/text", std::filesystem::perms(0600));
  EXPECT_EQ(MemoryFile::open(folder_, "text", 4096).status().code(), StatusCode::kMismatch);
  std::filesystem::permissions(folder_ + "/one", std::filesystem::perms(0660));
  EXPECT_EQ(MemoryFile::open(folder_, "one", 4096).status().code(), StatusCode::kMismatch);
  std::filesystem::create_symlink(folder_ + "/one", folder_ + "/link");
  EXPECT_EQ(MemoryFile::open(folder_, "link", 4096).status().code(), StatusCode::kMismatch);
}

TEST_F(MemoryFiles, ThatFindNoRoomAreAnErrorAndLeaveNothing) {
  const auto huge = MemoryFile::create(folder_, "huge", std::size_t{1} << 50);
  EXPECT_EQ(huge.status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/huge"));
}

TEST(MemoryFile, WithoutItsFolderIsUnsupported) {
  EXPECT_EQ(MemoryFile::create("/dev/shm/no/such", "one", 4096).status().code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace leeway::transport
