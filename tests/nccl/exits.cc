// Processes that exit during a call, or while a communicator is being made in the background or on
// another thread. Also processes that may have only few threads. Each process must end with the
// exit status that it asked for.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "nccl/nccl_api.h"

namespace {

constexpr int kRanks = 2;
constexpr int kTurns = 25;
constexpr int kStatus = 7;
constexpr int kThreadsMax = 12;
constexpr uid_t kStrangersFrom = 60100;  // ids that no user has
constexpr unsigned kSecondsMax = 20;     // a process that lives longer hangs

enum class Way { polls, blocks, calls };

struct Meeting {
  std::atomic<int> ready{0};
  ncclUniqueId id{};
};

ncclResult_t join(const Meeting& meeting, int rank, bool blocking, ncclComm_t* comm) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  return ncclCommInitRankConfig(comm, kRanks, meeting.id, rank, &config);
}

[[noreturn]] void live(Meeting& meeting, int rank, int turn, Way way) {
  alarm(kSecondsMax);
  if (rank == 0) {
    (void)ncclGetUniqueId(&meeting.id);
    meeting.ready = 1;
  }
  while (meeting.ready == 0) std::this_thread::yield();
  static ncclComm_t comm = nullptr;
  if (way == Way::blocks) {
    std::thread([&meeting, rank] {
      (void)join(meeting, rank, true, &comm);
      ::pause();
    }).detach();
  } else {
    (void)join(meeting, rank, way == Way::calls, &comm);
  }
  if (way == Way::calls) {
    std::thread([] {
      // Never destroyed, because this thread outlives objects that exit() destroys.
      static auto& tensor = *new std::vector<float>(1000);
      (void)ncclAllReduce(tensor.data(), tensor.data(), 1000, ncclFloat32, ncclSum, comm, nullptr);
      ::pause();
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::microseconds(40) * turn);
  std::exit(kStatus);
}

// Runs as a user of its own that may have `threads` threads. Only root may become another user, so
// without root there is no limit. Calls may return errors, and results are not checked. Only the
// exit status must be the right one.
[[noreturn]] void live_with_few_threads(int threads) {
  alarm(kSecondsMax);
  int version = 0;
  (void)ncclGetVersion(&version);  // the library is loaded
  const rlimit limit{static_cast<rlim_t>(threads), static_cast<rlim_t>(threads)};
  if (::setuid(kStrangersFrom + static_cast<uid_t>(threads)) == 0)
    ::setrlimit(RLIMIT_NPROC, &limit);
  ncclUniqueId id;
  (void)ncclGetUniqueId(&id);
  ncclComm_t comms[kRanks] = {};
  if (ncclCommInitAll(comms, kRanks, nullptr) == ncclSuccess) {
    static float values[kRanks][1000];
    (void)ncclGroupStart();
    for (int rank = 0; rank < kRanks; ++rank) {
      (void)ncclAllReduce(values[rank], values[rank], 1000, ncclFloat32, ncclSum, comms[rank],
                          nullptr);
    }
    (void)ncclGroupEnd();
    (void)ncclGroupStart();
    for (ncclComm_t comm : comms) (void)ncclCommDestroy(comm);
    (void)ncclGroupEnd();
  }
  std::exit(kStatus);
}

int count_deaths_with_few_threads() {
  for (int threads = 1; threads <= kThreadsMax; ++threads) {
    if (::fork() == 0) live_with_few_threads(threads);
  }
  int deaths = 0;
  int status = 0;
  while (::wait(&status) > 0) deaths += !WIFEXITED(status) || WEXITSTATUS(status) != kStatus;
  std::printf("%d of %d processes with few threads died\n", deaths, kThreadsMax);
  return deaths;
}

int count_deaths(Way way) {
  int deaths = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    void* const shared =
        ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto& meeting = *new (shared) Meeting;
    for (int rank = 0; rank < kRanks; ++rank) {
      if (::fork() == 0) live(meeting, rank, turn, way);
    }
    int status = 0;
    while (::wait(&status) > 0) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kStatus) continue;
      ++deaths;
      std::printf("way %d, turn %d: %s %d\n", static_cast<int>(way), turn,
                  WIFSIGNALED(status) ? "signal" : "exit status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    ::munmap(shared, sizeof(Meeting));
  }
  return deaths;
}

}  // namespace

int main() {
  ::setlinebuf(stdout);  // so that children inherit no buffered text which they would write again
  int deaths = 0;
  for (const Way way : {Way::polls, Way::blocks, Way::calls}) deaths += count_deaths(way);
  std::printf("%d of %d processes ended as they should not\n", deaths, 3 * kTurns * kRanks);
  deaths += count_deaths_with_few_threads();
  return deaths == 0 ? 0 : 1;
}
