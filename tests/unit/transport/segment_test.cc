#include "transport/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "unit/transport/shared_pair.h"

namespace leeway::transport {
namespace {

using ::testing::HasSubstr;

std::string path_of(const std::string& name) {
  return std::string(kSharedMemoryFolder) + "/" + name;
}

// A shared file that is deleted when its test ends.
class SegmentTest : public testing::Test {
 protected:
  ~SegmentTest() override { MemoryFile::remove_name(kSharedMemoryFolder, name_); }
  StatusCode code_of_open() const {
    return Segment::open(kSharedMemoryFolder, name_).status().code();
  }
  const std::string name_ = fresh_name();
};

TEST_F(SegmentTest, WhatOneEndWritesTheOtherReadsInBothMappings) {
  const SharedPair pair;
  for (const int number : {0, 1}) {
    const RingMemory here = pair.creator.ring(number);
    const RingMemory there = pair.opener.ring(number);
    ASSERT_EQ(here.bytes, kRingBytesMin);
    here.data[5] = std::byte(7 + number);
    EXPECT_EQ(there.data[5], std::byte(7 + number));
    EXPECT_EQ(there.data[5 + there.bytes], std::byte(7 + number)) << "the second mapping";
    here.head->written.store(64);
    EXPECT_EQ(there.head->written.load(), 64u);
  }
}

TEST_F(SegmentTest, OnlyItsOwnerMayOpenIt) {
  const auto segment = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin);
  ASSERT_TRUE(segment.ok()) << segment.status().c_str();
  struct stat facts {};
  ASSERT_EQ(::stat(path_of(name_).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod(path_of(name_).c_str(), 0644), 0);
  EXPECT_EQ(code_of_open(), StatusCode::kMismatch);
  ASSERT_EQ(::chmod(path_of(name_).c_str(), 0600), 0);
  EXPECT_EQ(code_of_open(), StatusCode::kOk);
  if (::chown(path_of(name_).c_str(), 12345, 12345) != 0) GTEST_SKIP() << "not root";
  EXPECT_EQ(code_of_open(), StatusCode::kMismatch) << "root reads what another user made";
}

TEST_F(SegmentTest, ItsPagesAreTakenAtOnce) {
  const auto segment = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin);
  struct stat facts {};
  ASSERT_EQ(::stat(path_of(name_).c_str(), &facts), 0);
  EXPECT_GE(static_cast<std::size_t>(facts.st_blocks) * 512, 2 * kRingBytesMin);
}

// The child mounts small memory in a namespace of its own. Its exit status is the result.
TEST_F(SegmentTest, FullMemoryIsAnErrorThatNamesTheRemedyAndLeavesNothing) {
  constexpr int kNoMount = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", kSharedMemoryFolder, "tmpfs", 0, "size=128k") != 0)
      ::_exit(kNoMount);
    const auto segment = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin);
    const bool named = std::strstr(segment.status().c_str(), "--shm-size") != nullptr;
    const bool left = std::filesystem::exists(path_of(name_));
    ::_exit(segment.status().code() == StatusCode::kResourceExhausted && named && !left ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  if (WIFEXITED(result) && WEXITSTATUS(result) == kNoMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(result, 0);
}

TEST_F(SegmentTest, MissingFolderIsAnErrorThatNamesIt) {
  const auto segment = Segment::create("/dev/shm/there-is-no-such-folder", name_, kRingBytesMin);
  EXPECT_EQ(segment.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(segment.status().c_str(), HasSubstr("/dev/shm/there-is-no-such-folder"));
}

TEST_F(SegmentTest, FolderThatIsNoMemoryIsRefused) {
  EXPECT_EQ(check_shared_memory("/proc").code(), StatusCode::kUnsupported);
  EXPECT_TRUE(check_shared_memory(kSharedMemoryFolder).ok());
}

TEST_F(SegmentTest, ANameThatIsTakenIsNotUsed) {
  const auto first = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin);
  EXPECT_FALSE(Segment::create(kSharedMemoryFolder, name_, kRingBytesMin).ok());
  EXPECT_EQ(code_of_open(), StatusCode::kOk) << "and the first one stays";
}

TEST_F(SegmentTest, WhatIsNotThereYetIsToldFromWhatIsWrong) {
  EXPECT_EQ(code_of_open(), StatusCode::kUnavailable);
  const int file = ::open(path_of(name_).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  EXPECT_EQ(code_of_open(), StatusCode::kUnavailable) << "its creator takes its pages";
  const std::size_t whole = 4096 + 2 * kRingBytesMin;
  ASSERT_EQ(::posix_fallocate(file, 0, static_cast<off_t>(whole)), 0);
  EXPECT_EQ(code_of_open(), StatusCode::kOk);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, whole - 1, whole + 1, 4096 + 2 * kRingBytesMin + 4096}) {
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(code_of_open(), StatusCode::kMismatch) << bytes;
  }
  ASSERT_EQ(::ftruncate(file, 0), 0);
  ASSERT_EQ(::ftruncate(file, static_cast<off_t>(whole)), 0);
  EXPECT_EQ(code_of_open(), StatusCode::kMismatch) << "a hole: reading it may be a SIGBUS";
  ::close(file);
}

TEST_F(SegmentTest, ALinkIsNotFollowed) {
  const std::string other = fresh_name();
  const auto segment = Segment::create(kSharedMemoryFolder, other, kRingBytesMin);
  ASSERT_EQ(::symlink(path_of(other).c_str(), path_of(name_).c_str()), 0);
  EXPECT_EQ(code_of_open(), StatusCode::kMismatch);
  MemoryFile::remove_name(kSharedMemoryFolder, other);
}

TEST_F(SegmentTest, MemoryStaysWhenItsNameAndTheOtherEndAreGone) {
  SharedPair pair;
  const RingMemory ring = pair.opener.ring(0);
  { const Segment gone = std::move(pair.creator); }
  std::memset(ring.data, 1, ring.bytes);
  EXPECT_EQ(ring.data[2 * ring.bytes - 1], std::byte{1});
}

// The child that created the segment ends without a destructor, as if it were killed.
TEST_F(SegmentTest, NothingIsLeftOfAProcessThatDiesAfterItsPeerCame) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto segment = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin);
    ::_exit(segment.ok() ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  ASSERT_EQ(result, 0);
  const auto opened = Segment::open(kSharedMemoryFolder, name_);
  EXPECT_TRUE(opened.ok());
  MemoryFile::remove_name(kSharedMemoryFolder, name_);
  EXPECT_FALSE(std::filesystem::exists(path_of(name_)));
  opened.value().ring(0).data[0] = std::byte{1};
}

}  // namespace
}  // namespace leeway::transport
