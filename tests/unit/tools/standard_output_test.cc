// Tests in processes of their own, whose standard output is replaced.
#include "standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "exit_code.h"

namespace leeway::tools {
namespace {

constexpr const char* kDiskFull = "error: standard output: No space left on device\n";

// Calls `write` and then finish_output(exit_code) with `output` as standard output. Returns the
// exit code and what stderr has.
std::pair<int, std::string> finish(int output, int exit_code, const std::function<void()>& write) {
  std::fflush(stdout);
  testing::internal::CaptureStderr();
  const pid_t child = fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_IGN);
    ::dup2(output, STDOUT_FILENO);
    write();
    _exit(finish_output(exit_code));
  }
  ::close(output);
  int status = 0;
  waitpid(child, &status, 0);
  return {WEXITSTATUS(status), testing::internal::GetCapturedStderr()};
}

int full_device() {
  return ::open("/dev/full", O_WRONLY | O_CLOEXEC);
}

TEST(FinishOutput, LeavesTheExitCodeIfNothingIsLost) {
  for (const int code : {0, kExitUsage}) {
    const auto outcome = finish(::open("/dev/null", O_WRONLY | O_CLOEXEC), code, [] {
      print("a line\n");
      std::printf("another\n");
    });
    EXPECT_EQ(outcome, std::pair(code, std::string()));
  }
}

TEST(FinishOutput, SaysThatOutputIsLost) {
  const std::string long_text(100'000, 'x');
  const auto told = std::pair(kExitFailed, std::string(kDiskFull));
  EXPECT_EQ(finish(full_device(), 0, [] { std::printf("a line\n"); }), told);
  EXPECT_EQ(finish(full_device(), 0, [] { print("a line\n"); }), told);
  EXPECT_EQ(finish(full_device(), 0, [&] { print(long_text); }), told);
}

TEST(FinishOutput, DoesNotHideAnotherFailure) {
  EXPECT_EQ(finish(full_device(), kExitUsage, [] { print("a line\n"); }),
            std::pair(kExitUsage, std::string(kDiskFull)));
}

TEST(FinishOutput, AReaderThatStopsEarlyIsNoError) {
  for (const std::size_t size : {10, 100'000}) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    ::close(pipe[0]);
    EXPECT_EQ(finish(pipe[1], 0, [&] { print(std::string(size, 'x')); }),
              std::pair(0, std::string()));
  }
}

}  // namespace
}  // namespace leeway::tools
