// Child processes of a test. Each child has its own environment, is read line by line, and never
// outlives the test.
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

// One child process. Its standard output is read here; its standard error is the test's. The
// destructor kills the child with SIGKILL and reaps it.
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

  // Returns the child's next line without the line end, or nullopt after the last line or at
  // `until`.
  std::optional<std::string> read_line(TimePoint until);

  // Returns everything that the child writes until it closes its output, or until `until`.
  std::string read_all(TimePoint until);

  // Waits for the child's end. Returns its exit code, or 128 + n if signal n ended it, or nullopt
  // if it still runs at `until`.
  std::optional<int> wait(TimePoint until);

 private:
  bool read_more(TimePoint until);  // returns false at the end of output, or when time is over

  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;
  std::optional<int> exit_code_;
};

// Result of a command. The exit code is -1 if the command could not be started, or was killed
// because it took longer than `patience`.
struct Outcome {
  int exit_code = -1;
  std::string output;
};
Outcome run_command(const std::vector<std::string>& argv,
                    std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace leeway::integration
