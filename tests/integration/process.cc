#include "integration/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

namespace leeway::integration {
namespace {

// Variables of a launcher that runs the tests must not reach the ranks that the tests start.
constexpr std::array<std::string_view, 12> kLauncherPrefixes = {
    "LEEWAY_",      "OMPI_",        "PMIX_",
    "PMI_",         "SLURM_",       "RANK=",
    "WORLD_SIZE=",  "LOCAL_RANK=",  "LOCAL_WORLD_SIZE=",
    "MASTER_ADDR=", "MASTER_PORT=", "MPI_"};

bool from_launcher(std::string_view variable) {
  return std::any_of(kLauncherPrefixes.begin(), kLauncherPrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

std::vector<std::string> child_environment(const Environment& added) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!from_launcher(*variable)) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int milliseconds_left(TimePoint until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, const Environment& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe2");
  output_ = ends[0];
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = child_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawnp(&pid_, argv[0].c_str(), &actions, nullptr,
                                 pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return;
  close(output_);
  fail(error, "cannot start " + argv[0]);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      unread_(std::move(other.unread_)),
      exit_code_(other.exit_code_) {}

Process::~Process() {
  if (pid_ > 0 && !exit_code_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

void Process::signal(int number) const {
  if (!exit_code_) kill(pid_, number);
}

bool Process::read_more(TimePoint until) {
  pollfd waiting{output_, POLLIN, 0};
  if (poll(&waiting, 1, milliseconds_left(until)) <= 0) return false;
  std::array<char, 4096> piece;
  const ssize_t count = read(output_, piece.data(), piece.size());
  if (count <= 0) return false;
  unread_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

std::optional<std::string> Process::read_line(TimePoint until) {
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!read_more(until)) return std::nullopt;
  }
}

std::string Process::read_all(TimePoint until) {
  while (read_more(until)) {
  }
  return std::exchange(unread_, {});
}

std::optional<int> Process::wait(TimePoint until) {
  if (exit_code_) return exit_code_;
  const int handle =
      static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));  // glibc 2.36 declares it for C only
  pollfd ended{handle, POLLIN, 0};
  const bool in_time = handle >= 0 && poll(&ended, 1, milliseconds_left(until)) > 0;
  if (handle >= 0) close(handle);
  if (!in_time) return std::nullopt;
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

Outcome run_command(const std::vector<std::string>& argv, std::chrono::seconds patience) {
  const TimePoint until = Clock::now() + patience;
  try {
    Process process(argv, {});
    std::string output = process.read_all(until);
    return {process.wait(until).value_or(-1), std::move(output)};
  } catch (const std::system_error& error) {
    return {-1, error.what()};
  }
}

}  // namespace leeway::integration
