#include "rank_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>

namespace leeway::tools {
namespace {

using Clock = std::chrono::steady_clock;

// SIGCHLD wakes us; this bounds the damage should some library's thread have eaten it.
constexpr timespec kLookInterval = {.tv_sec = 0, .tv_nsec = 100'000'000};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set, signal);
  return set;
}

// Blocks the watched signals, so that they can be waited for; the ranks start with the old mask.
class SignalWatch {
 public:
  SignalWatch() { pthread_sigmask(SIG_BLOCK, &watched_, &before_); }
  ~SignalWatch() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  const sigset_t& before() const { return before_; }
  int next() const { return sigtimedwait(&watched_, nullptr, &kLookInterval); }  // < 0: none came

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

// posix_spawn's attribute objects, released in every case.
struct SpawnPlan {
  explicit SpawnPlan(const sigset_t& mask, bool quiet) {
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawn_file_actions_init(&actions);
    if (!quiet) return;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t actions{};
};

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
    const SpawnPlan plan(signals_.before(), rank != 0);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, command_.program.c_str(), &plan.actions, &plan.attributes,
                                  pointers_to(arguments).data(), pointers_to(environment).data());
    if (error != 0) {
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

  // One turn: a signal or a moment passes, then the dead are collected and time is checked.
  void look() {
    const int signal = signals_.next();
    if (signal == SIGINT || signal == SIGTERM) on_interrupt(signal);
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
  int exit_code_ = 0;        // of the first failure
  bool terminated_ = false;  // SIGTERM has been sent
  Clock::time_point next_step_;
};

}  // namespace

Result<int> run_rank_processes(const RankCommand& command) {
  return RankProcesses(command).run();
}

}  // namespace leeway::tools
