#include "rank_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "interrupt.h"

namespace leeway::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Longest time between two looks at the ranks. SIGCHLD normally ends the wait earlier, but another
// library's thread may take the signal.
constexpr timespec kLookInterval = {.tv_sec = 0, .tv_nsec = 100'000'000};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kInterrupts) {
    // An ignored signal must stay out of the set: sigtimedwait() would take it once it is blocked.
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  return set;
}

// Blocks the watched signals in this thread, so that sigtimedwait() can take them. Ranks start with
// the old mask.
class SignalWatch {
 public:
  SignalWatch() { pthread_sigmask(SIG_BLOCK, &watched_, &before_); }
  ~SignalWatch() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  const sigset_t& before() const { return before_; }
  // Waits for a signal for at most kLookInterval. Returns a negative number if none came.
  int next() const { return sigtimedwait(&watched_, nullptr, &kLookInterval); }

 private:
  const sigset_t watched_ = watched_signals();
  sigset_t before_{};
};

std::vector<std::string> environment_of(const RankCommand& command, int rank) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    char* const equals = std::strchr(*entry, '=');
    if (equals != nullptr) variables[std::string(*entry, equals)] = equals + 1;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned share = std::max(1u, cores / static_cast<unsigned>(command.ranks));
  variables.emplace("OMP_NUM_THREADS", std::to_string(share));
  variables["LEEWAY_RANK"] = variables["LEEWAY_LOCAL_RANK"] = std::to_string(rank);
  variables["LEEWAY_WORLD_SIZE"] = std::to_string(command.ranks);
  variables["LEEWAY_RENDEZVOUS"] = command.rendezvous;
  variables[kLauncherVariable] = std::to_string(::getpid());
  variables.emplace("LEEWAY_RUN_ID", command.run_id);

  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) entries.emplace_back(name).append("=").append(value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void open_as(int descriptor, int flags) {
  const int opened = ::open("/dev/null", flags);
  if (opened >= 0) ::dup2(opened, descriptor);
  if (opened > descriptor) ::close(opened);
}

// Turns a forked process into a rank. become() makes the kernel kill the rank when the launcher's
// thread ends, and ends the rank if the launcher has ended already. become() returns errno if the
// program cannot be started, and otherwise does not return.
struct RankStart {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const sigset_t* mask;
  pid_t launcher;
  bool quiet;

  int become() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(128 + SIGKILL);
    ::pthread_sigmask(SIG_SETMASK, mask, nullptr);
    if (quiet) {
      open_as(STDIN_FILENO, O_RDONLY);
      open_as(STDOUT_FILENO, O_WRONLY);
    }
    ::execve(program, arguments, environment);
    return errno;
  }
};

// Starts a rank's process. The child writes the error of execve() to a pipe, which a successful
// execve() closes. Returns -1 and sets `error` if the program was not started.
pid_t fork_rank(const RankStart& rank, int& error) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) {
    error = errno;
    return -1;
  }
  const pid_t pid = ::fork();
  error = pid < 0 ? errno : 0;
  if (pid == 0) {
    const int failure = rank.become();
    (void)!::write(pipe[1], &failure, sizeof failure);
    ::_exit(127);
  }
  ::close(pipe[1]);
  const bool failed = pid > 0 && ::read(pipe[0], &error, sizeof error) == sizeof error;
  ::close(pipe[0]);
  if (failed) ::waitpid(pid, nullptr, 0);
  return failed ? -1 : pid;
}

class RankProcesses {
 public:
  explicit RankProcesses(const RankCommand& command) : command_(command) {}

  Result<int> run() {
    for (int rank = 0; rank < command_.ranks; ++rank) {
      if (Status status = start(rank); !status.ok()) {
        kill_all(SIGKILL);
        while (running() > 0) look();
        return status;
      }
    }
    while (running() > 0) look();
    return exit_code_;
  }

 private:
  Status start(int rank) {
    std::vector<std::string> arguments = command_.argv;
    std::vector<std::string> environment = environment_of(command_, rank);
    const std::vector<char*> argv = pointers_to(arguments);
    const std::vector<char*> envp = pointers_to(environment);
    int error = 0;
    const pid_t pid = fork_rank({.program = command_.program.c_str(),
                                 .arguments = argv.data(),
                                 .environment = envp.data(),
                                 .mask = &signals_.before(),
                                 .launcher = ::getpid(),
                                 .quiet = rank != 0},
                                error);
    if (pid < 0) {
      return Status::error(StatusCode::kResourceExhausted, "rank %d could not be started (%s): %s",
                           rank, command_.program.c_str(), std::strerror(error));
    }
    pids_.push_back(pid);
    return {};
  }

  std::size_t running() const {
    return static_cast<std::size_t>(std::count_if(pids_.begin(), pids_.end(), is_running));
  }
  static bool is_running(pid_t pid) { return pid > 0; }

  // Waits for a signal, for at most kLookInterval. Then collects ended ranks and checks time
  // limits.
  void look() {
    const int signal = signals_.next();
    if (signal > 0 && signal != SIGCHLD) on_interrupt(signal);
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      int status = 0;
      if (!is_running(pids_[rank]) || ::waitpid(pids_[rank], &status, WNOHANG) != pids_[rank])
        continue;
      pids_[rank] = 0;
      on_end(rank, status);
    }
    if (exit_code_ != 0 && running() > 0 && Clock::now() >= next_step_) escalate();
  }

  void on_interrupt(int signal) {
    if (exit_code_ == 0) exit_code_ = 128 + signal;
    kill_all(signal);
    terminated_ = true;
    next_step_ = Clock::now() + command_.patience;
  }

  void on_end(std::size_t rank, int status) {
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0 || exit_code_ != 0) return;
    exit_code_ = code;
    next_step_ = Clock::now() + command_.grace;
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "leeway: rank %zu was killed by signal %d (%s)\n", rank,
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
      std::fprintf(stderr, "leeway: rank %zu failed with exit code %d\n", rank, code);
    }
  }

  void escalate() {
    if (!terminated_) {
      std::fprintf(stderr, "leeway: ending the %zu ranks that are still running\n", running());
    }
    kill_all(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    next_step_ = Clock::now() + command_.patience;
  }

  void kill_all(int signal) {
    for (const pid_t pid : pids_) {
      if (is_running(pid)) ::kill(pid, signal);
    }
  }

  const RankCommand& command_;
  SignalWatch signals_;
  std::vector<pid_t> pids_;  // by rank; 0 once it has ended
  int exit_code_ = 0;        // exit code of the first failure
  bool terminated_ = false;  // SIGTERM has been sent
  Clock::time_point next_step_;
};

}  // namespace

std::string random_run_id() {
  std::random_device device;
  return std::to_string(std::uint64_t{device()} << 32 | device());
}

Result<int> run_rank_processes(const RankCommand& command) {
  return RankProcesses(command).run();
}

}  // namespace leeway::tools
