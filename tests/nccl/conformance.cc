// The main program: chooses the cases, the number of ranks, and threads or processes.
#include "nccl/conformance.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include "nccl/on_device.h"

namespace conformance {
namespace {

constexpr unsigned kCaseSeconds = 60;
// How long a process may take to exit after its part: 200 ms by rule L5, plus the delay of a busy
// machine.
constexpr double kExitSeconds = 0.2 + 1.0;
const char* running_case = "";

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Arguments {
  int ranks = 2;
  bool processes = false;
  bool device = false;
  bool mixed = false;
  std::string only;  // part of a case's name
  std::vector<std::string> skipped;
  bool list = false;
};

Shared* make_shared_memory(int ranks) {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const shared = new (memory) Shared{};
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(ranks));
  pthread_barrierattr_destroy(&attributes);
  return shared;
}

void run_as_threads(const Case& one, int ranks, Shared& shared) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      use_device_of_rank(rank);
      one.run({rank, ranks, shared, false});
    });
  for (std::thread& thread : threads) thread.join();
}

void open_devices() {
  const std::string why = use_devices();
  if (why.empty()) return;
  std::fprintf(stderr, "--device: %s\n", why.c_str());
  std::_Exit(2);
}

// Returns true if all processes exited normally and in time.
bool run_as_processes(const Case& one, const Arguments& arguments, Shared& shared) {
  const int ranks = arguments.ranks;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kCaseSeconds);
      // Each process opens CUDA after the fork, because a child cannot use what its parent opened.
      if (arguments.mixed && rank % 2 == 1) {
        ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
      } else if (arguments.device) {
        open_devices();
      }
      use_device_of_rank(rank);
      one.run({rank, ranks, shared, true});
      shared.ended_at[rank] = now_ns();
      std::exit(0);  // with the objects that programs leave undestroyed
    }
    children.push_back(child);
  }
  bool good = true;
  for (int ended = 0; ended < ranks; ++ended) {
    int status = 0;
    const pid_t child = ::wait(&status);
    int rank = 0;
    while (children[static_cast<std::size_t>(rank)] != child) ++rank;
    const std::int64_t done_at = shared.ended_at[rank];
    const double took = done_at == 0 ? 0 : static_cast<double>(now_ns() - done_at) / 1e9;
    const bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && took < kExitSeconds;
    if (!ok && good) {
      std::fprintf(stderr, "%s: process of rank %d: status %d, %.3f s to end\n", one.name.c_str(),
                   rank, status, took);
      for (const pid_t other : children) ::kill(other, SIGKILL);  // children not yet waited for
    }
    good = good && ok;
  }
  return good;
}

bool fits(const Case& one, const Arguments& arguments) {
  if (one.needs == Case::Needs::processes && !arguments.processes) return false;
  for (const std::string& name : arguments.skipped) {
    if (one.name == name) return false;
  }
  return arguments.only.empty() || one.name.find(arguments.only) != std::string::npos;
}

bool parse(int count, char** words, Arguments& out) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word(words[i]);
    if (word == "--list") {
      out.list = true;
    } else if (word == "--skip" && i + 1 < count) {
      out.skipped.emplace_back(words[++i]);
    } else if (word == "--processes") {
      out.processes = true;
    } else if (word == "--device") {
      out.device = true;
    } else if (word == "--mixed") {  // every second process has no device
      out.device = out.processes = out.mixed = true;
    } else if (word == "--ranks" && i + 1 < count) {
      out.ranks = std::atoi(words[++i]);
    } else if (word == "--only" && i + 1 < count) {
      out.only = words[++i];
    } else {
      return false;
    }
  }
  return out.ranks >= 2 && out.ranks <= 8;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& cases : {operation_cases(), group_cases(), message_cases(), argument_cases(),
                            life_cases(), failure_cases(), leeway_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

int run_all(const Arguments& arguments) {
  int ran = 0;
  if (arguments.device && !arguments.processes) open_devices();
  for (const Case& one : all_cases()) {
    if (!fits(one, arguments)) continue;
    ++ran;
    if (arguments.list) {
      std::printf("%s\n", one.name.c_str());
      continue;
    }
    running_case = one.name.c_str();
    Shared* const shared = make_shared_memory(arguments.ranks);
    const auto begin = std::chrono::steady_clock::now();
    if (arguments.processes) {
      if (!run_as_processes(one, arguments, *shared)) return 1;
    } else {
      ::alarm(kCaseSeconds);
      run_as_threads(one, arguments.ranks, *shared);
      ::alarm(0);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("ok %s (%.2f s)\n", one.name.c_str(), took.count());
    std::fflush(stdout);
    ::munmap(shared, sizeof(Shared));
  }
  std::printf("%d cases, %d ranks as %s%s\n", ran, arguments.ranks,
              arguments.processes ? "processes" : "threads",
              arguments.device ? ", on device memory" : "");
  return ran == 0 ? 2 : 0;
}

}  // namespace

void Rank::barrier() const {
  pthread_barrier_wait(&shared.barrier);
}

ncclUniqueId Rank::fresh_id() const {
  barrier();
  if (rank == 0) EXPECT_OK(*this, ncclGetUniqueId(&shared.id));
  barrier();
  const ncclUniqueId id = shared.id;
  barrier();
  return id;
}

ncclComm_t Rank::connect() const {
  const ncclUniqueId id = fresh_id();
  ncclComm_t comm = nullptr;
  EXPECT_OK(*this, ncclCommInitRank(&comm, size, id, rank));
  return comm;
}

ncclComm_t Rank::connect(ncclConfig_t config) const {
  const ncclUniqueId id = fresh_id();
  ncclComm_t comm = nullptr;
  const ncclResult_t code = ncclCommInitRankConfig(&comm, size, id, rank, &config);
  EXPECT_THAT_IT(*this, code == ncclSuccess || code == ncclInProgress, std::to_string(code));
  EXPECT_OK(*this, settled(*this, comm));
  return comm;
}

ncclResult_t settled(const Rank& rank, ncclComm_t comm) {
  ncclResult_t code = ncclInProgress;
  while (code == ncclInProgress) {
    EXPECT_OK(rank, ncclCommGetAsyncError(comm, &code));
    if (code == ncclInProgress) std::this_thread::yield();
  }
  return code;
}

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void fail_at(const Rank& rank, const char* file, int line, const std::string& detail) {
  const char* const slash = std::strrchr(file, '/');
  std::fprintf(stderr, "FAILED %s, rank %d of %d, %s:%d: %s\n", running_case, rank.rank, rank.size,
               slash == nullptr ? file : slash + 1, line, detail.c_str());
  std::_Exit(1);
}

}  // namespace conformance

int main(int count, char** words) {
  conformance::Arguments arguments;
  if (!conformance::parse(count, words, arguments)) {
    std::fprintf(
        stderr,
        "usage: nccl_conformance [--ranks 2..8] [--processes] [--device] [--mixed] [--only NAME] "
        "[--skip NAME]... [--list]\n");
    return 2;
  }
  return conformance::run_all(arguments);
}
