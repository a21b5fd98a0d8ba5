// Tests with shell scripts as ranks.
#include "rank_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "interrupt.h"

namespace leeway::tools {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

RankCommand script(int ranks, const std::string& text) {
  RankCommand command;
  command.program = "/bin/sh";
  command.argv = {"sh", "-c", text};
  command.ranks = ranks;
  command.rendezvous = "127.0.0.1:4000";
  command.grace = 10s;
  command.patience = 10s;
  return command;
}

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
  Duration time{};
};

Outcome run(const RankCommand& command) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto start = std::chrono::steady_clock::now();
  const auto result = run_rank_processes(command);
  Outcome outcome;
  outcome.time = std::chrono::steady_clock::now() - start;
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(result.ok()) << result.status().c_str();
  if (result.ok()) outcome.exit_code = *result;
  return outcome;
}

// A folder that is deleted after the test.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "rank_processes_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void wait_for(const std::string& name) const {
    while (!std::filesystem::exists(path_ / name)) usleep(1000);
  }

 private:
  std::filesystem::path path_;
};

TEST(RunRankProcesses, TellsEveryRankItsPlace) {
  const Folder folder;
  const auto outcome =
      run(script(3, "cd " + folder.path() +
                        "; echo $LEEWAY_LOCAL_RANK of $LEEWAY_WORLD_SIZE at $LEEWAY_RENDEZVOUS by "
                        "$LEEWAY_LAUNCHER_PID > $LEEWAY_RANK"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(folder.read(rank),
              rank + " of 3 at 127.0.0.1:4000 by " + std::to_string(getpid()) + "\n");
  }
}

TEST(RunRankProcesses, NamesEachStartUnlessTheCallerDoes) {
  const Folder folder;
  const std::string text = "echo $LEEWAY_RUN_ID > " + folder.path() + "/$LEEWAY_RANK";
  EXPECT_EQ(run(script(2, text)).exit_code, 0);
  const std::string first = folder.read("0");
  EXPECT_GT(first.size(), 1u);
  EXPECT_EQ(folder.read("1"), first);
  EXPECT_EQ(run(script(2, text)).exit_code, 0);
  EXPECT_NE(folder.read("0"), first);
  setenv("LEEWAY_RUN_ID", "mine", 1);
  EXPECT_EQ(run(script(1, text)).exit_code, 0);
  unsetenv("LEEWAY_RUN_ID");
  EXPECT_EQ(folder.read("0"), "mine\n");
}

TEST(RunRankProcesses, SharesTheCoresUnlessTold) {
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(run(script(8, "test $OMP_NUM_THREADS -ge 1")).exit_code, 0);
  setenv("OMP_NUM_THREADS", "77", 1);
  EXPECT_EQ(run(script(1, "test $OMP_NUM_THREADS = 77")).exit_code, 0);
  unsetenv("OMP_NUM_THREADS");
}

TEST(RunRankProcesses, ShowsTheOutputOfRankZeroOnly) {
  const auto outcome = run(script(3, "echo this is rank $LEEWAY_RANK"));
  EXPECT_EQ(outcome.out, "this is rank 0\n");
}

TEST(RunRankProcesses, NamesTheRankThatFailedAndReturnsItsCode) {
  const auto outcome = run(script(3, "test $LEEWAY_RANK = 1 && exit 7; exit 0"));
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 failed with exit code 7"));
}

TEST(RunRankProcesses, NamesTheRankThatWasKilled) {
  const auto outcome = run(script(2, "test $LEEWAY_RANK = 1 && kill -9 $$; exit 0"));
  EXPECT_EQ(outcome.exit_code, 128 + 9);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 was killed by signal 9"));
}

TEST(RunRankProcesses, LetsTheOthersReportWithinTheGraceTime) {
  const Folder folder;
  const std::string in_folder = "cd " + folder.path() + "; ";
  const auto outcome = run(
      script(2, in_folder + "if test $LEEWAY_RANK = 0; then exit 3; fi; sleep 0.05; touch report"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/report"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("ending")));
}

TEST(RunRankProcesses, EndsTheOthersAfterTheGraceTime) {
  RankCommand command = script(2, "test $LEEWAY_RANK = 0 && exit 3; exec sleep 60");
  command.grace = 20ms;
  const auto outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("ending the 1 ranks"));
  EXPECT_LT(outcome.time, 10s);
}

TEST(RunRankProcesses, KillsWhatIgnoresBeingAskedToEnd) {
  RankCommand command =
      script(2, "trap '' TERM; test $LEEWAY_RANK = 0 && exit 3; while :; do sleep 0.05; done");
  command.grace = 20ms;
  command.patience = 20ms;
  const auto outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_LT(outcome.time, 10s);
}

TEST(RunRankProcesses, KillsARankThatIsStopped) {
  RankCommand command = script(2, "test $LEEWAY_RANK = 0 && exit 3; kill -STOP $$");
  command.grace = 20ms;
  command.patience = 20ms;
  EXPECT_EQ(run(command).exit_code, 3);
}

TEST(RunRankProcesses, PassesSignalsOn) {
  for (const int signal : kInterrupts) {
    const Folder folder;
    const std::string text =
        "cd " + folder.path() +
        "; trap 'touch told$LEEWAY_RANK; exit 0' HUP INT TERM; touch up$LEEWAY_RANK; "
        "while :; do sleep 0.02; done";
    const pid_t launcher = fork();
    if (launcher == 0) {
      ::signal(signal, SIG_DFL);
      const auto result = run_rank_processes(script(2, text));
      _exit(result.ok() ? *result : 99);
    }
    folder.wait_for("up0");
    folder.wait_for("up1");
    kill(launcher, signal);
    int status = 0;
    waitpid(launcher, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/told0"));
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/told1"));
  }
}

TEST(RunRankProcesses, KeepsIgnoringWhatWasIgnored) {
  const Folder folder;
  const pid_t launcher = fork();
  if (launcher == 0) {
    ::signal(SIGHUP, SIG_IGN);
    const auto result = run_rank_processes(
        script(1, "touch " + folder.path() + "/up; while :; do sleep 0.02; done"));
    _exit(result.ok() ? *result : 99);
  }
  folder.wait_for("up");
  kill(launcher, SIGHUP);
  kill(launcher, SIGTERM);
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

// Ranks must die however early the launcher is killed, and whatever signals they ignore. Each rank
// holds the write end of a pipe, so the end of file shows that all ranks have died.
TEST(RunRankProcesses, RanksDoNotOutliveAKilledLauncher) {
  for (const bool is_early : {false, true}) {
    const Folder folder;
    int lives[2] = {-1, -1};
    ASSERT_EQ(pipe(lives), 0);
    const pid_t launcher = fork();
    if (launcher == 0) {
      close(lives[0]);
      const std::string text = "trap '' TERM INT HUP; cd " + folder.path() +
                               "; touch up$LEEWAY_RANK; while :; do sleep 0.02; done";
      const auto result = run_rank_processes(script(3, text));
      _exit(result.ok() ? *result : 99);
    }
    close(lives[1]);
    if (!is_early) {
      for (const char* const up : {"up0", "up1", "up2"}) folder.wait_for(up);
    }
    kill(launcher, SIGKILL);
    waitpid(launcher, nullptr, 0);
    char byte = 0;
    EXPECT_EQ(read(lives[0], &byte, 1), 0);  // end of file, when all have ended
    close(lives[0]);
  }
}

TEST(RunRankProcesses, ReportsAProgramThatDoesNotExist) {
  RankCommand command = script(2, "");
  command.program = "/no/such/program";
  const auto result = run_rank_processes(command);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().c_str(), HasSubstr("rank 0 could not be started (/no/such/program)"));
}

}  // namespace
}  // namespace leeway::tools
