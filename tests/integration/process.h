// Child processes of a test: started with an environment of their own, listened to line by line,
// never left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leeway::integration {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Environment = std::map<std::string, std::string>;

// One child. Its standard output is read here, its standard error is the test's. Destroying the
// object kills the child with SIGKILL and reaps it.
class Process {
 public:
  // The child sees the test's environment without launcher and LEEWAY_ variables, plus
  // `environment`. Throws std::system_error if it cannot be started.
  Process(const std::vector<std::string>& argv, const Environment& environment);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;

  void signal(int number) const;

  // The next line of its output without the line end; nothing after the last line, or when `until`
  // has passed.
  std::optional<std::string> read_line(TimePoint until);

  // Everything that the child writes until it closes its output or `until` has passed.
  std::string read_all(TimePoint until);

  // The child's exit code, or 128 + n if signal n ended it; nothing while it runs. Waits until
  // `until`.
  std::optional<int> wait(TimePoint until);

 private:
  bool read_more(TimePoint until);  // returns false at the end of output, or when time is over

  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;
  std::optional<int> exit_code_;
};

// Runs a command to its end. Exit code -1: it could not be started, or took longer than `patience`
// and was killed.
struct Outcome {
  int exit_code = -1;
  std::string output;
};
Outcome run_command(const std::vector<std::string>& argv,
                    std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace leeway::integration
