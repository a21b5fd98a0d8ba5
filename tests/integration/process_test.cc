// Tests of the test tools: they must report a rank that hangs or dies.
#include "integration/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace leeway::integration {
namespace {

TimePoint soon() {
  return Clock::now() + std::chrono::seconds(10);
}

TEST(Process, GivesLinesAndExitCode) {
  Process process({"sh", "-c", "echo one; echo two; exit 3"}, {});
  EXPECT_EQ(process.read_line(soon()), "one");
  EXPECT_EQ(process.read_line(soon()), "two");
  EXPECT_EQ(process.read_line(soon()), std::nullopt);
  EXPECT_EQ(process.wait(soon()), 3);
}

TEST(Process, HidesTheLauncherOfTheTestsAndAddsWhatIsAsked) {
  setenv("LEEWAY_RANK", "7", 1);
  setenv("MASTER_PORT", "1", 1);
  Process process({"sh", "-c", "echo \"[$LEEWAY_RANK$MASTER_PORT$ADDED]\""}, {{"ADDED", "yes"}});
  EXPECT_EQ(process.read_line(soon()), "[yes]");
  unsetenv("LEEWAY_RANK");
  unsetenv("MASTER_PORT");
}

TEST(Process, NamesTheSignalThatEndedIt) {
  Process process({"sleep", "100"}, {});
  EXPECT_EQ(process.wait(Clock::now() + std::chrono::milliseconds(20)), std::nullopt);
  process.signal(SIGKILL);
  EXPECT_EQ(process.wait(soon()), 128 + SIGKILL);
}

TEST(Process, IsGoneWhenTheObjectIs) {
  std::string id;
  {
    Process process({"sh", "-c", "echo $$; exec sleep 100"}, {});
    id = process.read_line(soon()).value();
  }
  EXPECT_NE(kill(std::stoi(id), 0), 0);
}

TEST(RunCommand, SaysThatThereIsNoSuchCommand) {
  EXPECT_EQ(run_command({"no-such-command-of-leeway"}).exit_code, -1);
  EXPECT_EQ(run_command({"sh", "-c", "echo text; exit 4"}).exit_code, 4);
  EXPECT_EQ(run_command({"echo", "text"}).output, "text\n");
}

}  // namespace
}  // namespace leeway::integration
