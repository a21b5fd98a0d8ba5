#include "base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leeway {
namespace {

// Runs `function` in a forked child. Returns what `function` returned there.
template <typename Function>
int in_child(const Function& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

bool is_dev_null(int descriptor) {
  struct stat is {};
  struct stat null {};
  return ::fstat(descriptor, &is) == 0 && ::stat("/dev/null", &null) == 0 &&
         is.st_rdev == null.st_rdev && S_ISCHR(is.st_mode);
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  int ends[2] = {-1, -1};
};

TEST(ForkGeneration, CountsForks) {
  const std::uint32_t here = fork_generation();
  EXPECT_EQ(in_child([here] { return fork_generation() == here + 1 ? 0 : 1; }), 0);
  EXPECT_EQ(fork_generation(), here);
}

TEST(KeptFromChildren, IsNothingInAForkedChildAndTheSameInTheParent) {
  Pipe pipe;
  const KeptFromChildren kept(pipe.ends[1]);
  EXPECT_EQ(in_child([&] { return is_dev_null(pipe.ends[1]) ? 0 : 1; }), 0);
  EXPECT_EQ(::write(pipe.ends[1], "x", 1), 1);
}

TEST(KeptFromChildren, TheOtherSideHearsThatTheParentHasClosedIt) {
  Pipe pipe, hold;
  KeptFromChildren kept(pipe.ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(hold.ends[1]);
    (void)!::read(hold.ends[0], &byte, 1);  // until the parent lets go
    ::_exit(0);
  }
  kept.release();
  ::close(std::exchange(pipe.ends[1], -1));
  char byte = 0;
  EXPECT_EQ(::read(pipe.ends[0], &byte, 1), 0);
  ::close(std::exchange(hold.ends[1], -1));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(KeptFromChildren, ExecClosesIt) {
  Pipe pipe;
  const KeptFromChildren kept(pipe.ends[1]);
  EXPECT_EQ(::fcntl(pipe.ends[1], F_GETFD), FD_CLOEXEC);
}

TEST(KeptFromChildren, AChildKeepsWhatWasReleased) {
  Pipe pipe;
  KeptFromChildren kept(pipe.ends[1]);
  KeptFromChildren moved = std::move(kept);
  moved.release();
  EXPECT_EQ(in_child([&] { return is_dev_null(pipe.ends[1]) ? 1 : 0; }), 0);
}

// The child may have closed the guarded descriptor, so the guard must not touch it there.
TEST(KeptFromChildren, AChildsGuardOfTheParentsDescriptorEndsQuietly) {
  Pipe pipe;
  auto* const kept = new KeptFromChildren(pipe.ends[1]);
  EXPECT_EQ(in_child([&] {
              delete kept;
              return ::close(pipe.ends[1]);
            }),
            0);
  delete kept;
}

}  // namespace
}  // namespace leeway
