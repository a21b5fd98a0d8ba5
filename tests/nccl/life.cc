// Rules C2, C3 and C6 to C11: how communicators are made, changed and ended while no rank fails.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "nccl/conformance.h"
#include "nccl/on_device.h"

namespace conformance {
namespace {

void check_sum(const Rank& rank, ncclComm_t comm, int size) {
  int count = 0;
  EXPECT_OK(rank, ncclCommCount(comm, &count));
  EXPECT_THAT_IT(rank, count == size, std::to_string(count));
  int one = 1;
  EXPECT_OK(rank, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_THAT_IT(rank, one == size, std::to_string(one));
}

ncclResult_t mem_stats(ncclComm_t comm, int statistic, std::uint64_t* value) {
#if defined(NCCL_VERSION_CODE) && NCCL_VERSION_CODE >= 22907
  return ncclCommMemStats(comm, static_cast<ncclCommMemStat_t>(statistic), value);
#else
  return ncclCommMemStats(comm, statistic, value);
#endif
}

void version_is_nccls(const Rank& rank) {
  int version = 0;
  EXPECT_OK(rank, ncclGetVersion(&version));
  EXPECT_THAT_IT(rank, version >= 22809 && version < 30000, std::to_string(version));
}

void facts(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int number = -1;
  EXPECT_OK(rank, ncclCommUserRank(comm, &number));
  EXPECT_THAT_IT(rank, number == rank.rank, std::to_string(number));
  EXPECT_OK(rank, ncclCommCount(comm, &number));
  EXPECT_THAT_IT(rank, number == rank.size, std::to_string(number));
  EXPECT_OK(rank, ncclCommCuDevice(comm, &number));
  EXPECT_THAT_IT(rank, number >= 0, std::to_string(number));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// C2, C3, C6: calls on a non-blocking communicator do not wait for peers.
void calls_that_do_not_block(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = rank.fresh_id();
  ncclComm_t comm = nullptr;
  // The last rank begins only after the other ranks' calls have returned.
  if (rank.rank == rank.size - 1) rank.barrier();
  ncclResult_t code = ncclCommInitRankConfig(&comm, rank.size, id, rank.rank, &config);
  if (rank.rank != rank.size - 1) {
    EXPECT_THAT_IT(rank, code == ncclInProgress, std::to_string(code));
    EXPECT_OK(rank, ncclCommGetAsyncError(comm, &code));
    EXPECT_THAT_IT(rank, code == ncclInProgress, std::to_string(code));
    int value = 1;
    EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
                ncclInvalidArgument);
    rank.barrier();
  }
  EXPECT_OK(rank, settled(rank, comm));
  std::vector<int> values(100'000, 1);
  rank.barrier();
  if (rank.rank == rank.size - 1) rank.barrier();
  code =
      ncclAllReduce(values.data(), values.data(), values.size(), ncclInt32, ncclSum, comm, nullptr);
  if (rank.rank != rank.size - 1) {
    EXPECT_THAT_IT(rank, code == ncclInProgress, std::to_string(code));
    rank.barrier();
  }
  EXPECT_OK(rank, settled(rank, comm));
  EXPECT_THAT_IT(rank, values.back() == rank.size, std::to_string(values.back()));
  code = ncclCommFinalize(comm);
  EXPECT_THAT_IT(rank, code == ncclSuccess || code == ncclInProgress, std::to_string(code));
  EXPECT_OK(rank, settled(rank, comm));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void grouped_calls_that_do_not_block(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclComm_t comm = rank.connect(config);
  int a = 1;
  int b = 2;
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(&a, &a, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_OK(rank, ncclAllReduce(&b, &b, 1, ncclInt32, ncclSum, comm, nullptr));
  const ncclResult_t code = ncclGroupEnd();
  EXPECT_THAT_IT(rank, code == ncclSuccess || code == ncclInProgress, std::to_string(code));
  EXPECT_OK(rank, settled(rank, comm));
  EXPECT_THAT_IT(rank, a == rank.size && b == 2 * rank.size, std::to_string(a));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void finalize_twice(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  check_sum(rank, comm, rank.size);
  EXPECT_OK(rank, ncclCommFinalize(comm));
  EXPECT_CODE(rank, ncclCommFinalize(comm), ncclInvalidArgument);
  int value = 1;
  EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
              ncclInvalidArgument);
  EXPECT_OK(rank, ncclCommDestroy(comm));
  EXPECT_CODE(rank, ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommCount(comm, &value), ncclInvalidArgument);
}

void split(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  // Splits odd from even ranks, each in reverse order.
  ncclComm_t half = nullptr;
  EXPECT_OK(rank, ncclCommSplit(comm, rank.rank % 2, -rank.rank, &half, nullptr));
  const int size = (rank.size + 1 - rank.rank % 2) / 2;
  check_sum(rank, half, size);
  int number = -1;
  EXPECT_OK(rank, ncclCommUserRank(half, &number));
  EXPECT_THAT_IT(rank, number == size - 1 - rank.rank / 2, std::to_string(number));
  // With equal keys ranks keep their order. Rank 0 takes no part.
  ncclComm_t most = comm;
  const bool out = rank.rank == 0;
  EXPECT_OK(rank, ncclCommSplit(comm, out ? NCCL_SPLIT_NOCOLOR : 5, 7, &most, nullptr));
  EXPECT_THAT_IT(rank, (most == nullptr) == out, "a rank without a color has a communicator");
  if (!out) {
    check_sum(rank, most, rank.size - 1);
    EXPECT_OK(rank, ncclCommUserRank(most, &number));
    EXPECT_THAT_IT(rank, number == rank.rank - 1, std::to_string(number));
  }
  // A parent may be destroyed before its children.
  EXPECT_OK(rank, ncclCommDestroy(comm));
  check_sum(rank, half, size);
  EXPECT_OK(rank, ncclCommDestroy(most));
  EXPECT_OK(rank, ncclCommDestroy(half));
}

void split_inherits_the_config(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclComm_t comm = rank.connect(config);
  ncclComm_t child = nullptr;
  const ncclResult_t code = ncclCommSplit(comm, 0, 0, &child, nullptr);
  EXPECT_THAT_IT(rank, code == ncclSuccess || code == ncclInProgress, std::to_string(code));
  EXPECT_OK(rank, settled(rank, child));
  config.blocking = 1;
  ncclComm_t blocking = nullptr;
  EXPECT_OK(rank, ncclCommSplit(child, 0, 0, &blocking, &config));
  check_sum(rank, blocking, rank.size);
  EXPECT_OK(rank, ncclCommDestroy(blocking));
  EXPECT_OK(rank, ncclCommDestroy(child));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void shrink(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int excluded[] = {rank.size - 1};
  if (rank.rank != rank.size - 1) {
    ncclComm_t rest = nullptr;
    EXPECT_OK(rank, ncclCommShrink(comm, excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT));
    check_sum(rank, rest, rank.size - 1);
    EXPECT_OK(rank, ncclCommDestroy(rest));
  }
  rank.barrier();
  check_sum(rank, comm, rank.size);
  EXPECT_CODE(rank, ncclCommShrink(comm, excluded, 0, nullptr, nullptr, NCCL_SHRINK_DEFAULT),
              ncclInvalidArgument);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void scalable(const Rank& rank) {
  const ncclUniqueId id = rank.fresh_id();
  ncclUniqueId ids[2] = {id, {}};
  ncclComm_t comm = nullptr;
  EXPECT_OK(rank, ncclCommInitRankScalable(&comm, rank.size, rank.rank, 1, ids, nullptr));
  check_sum(rank, comm, rank.size);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void registered_memory(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  void* memory = nullptr;
  EXPECT_OK(rank, ncclMemAlloc(&memory, 10'000));
  EXPECT_THAT_IT(rank, reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0, "not aligned");
  std::vector<unsigned char> values(10'000, 1);
  write_memory(memory, values.data(), values.size());
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_OK(rank, ncclCommRegister(comm, memory, 10'000, &first));
  EXPECT_OK(rank, ncclCommRegister(comm, memory, 10'000, &second));
  EXPECT_THAT_IT(rank, first == second, "the same memory has two handles");
  EXPECT_OK(rank, ncclAllReduce(memory, memory, 10'000, ncclUint8, ncclSum, comm, nullptr));
  read_memory(values.data(), memory, values.size());
  EXPECT_THAT_IT(rank, values[9999] == rank.size, "wrong sum");
  EXPECT_OK(rank, ncclCommDeregister(comm, first));
  EXPECT_OK(rank, ncclCommDeregister(comm, second));
  EXPECT_CODE(rank, ncclCommDeregister(comm, first), ncclInvalidUsage);
  ncclWindow_t window = nullptr;
  EXPECT_OK(rank, ncclCommWindowRegister(comm, memory, 8192, &window, NCCL_WIN_DEFAULT));
  EXPECT_OK(rank, ncclCommWindowDeregister(comm, window));
  EXPECT_OK(rank, ncclCommDestroy(comm));
  EXPECT_OK(rank, ncclMemFree(memory));
  EXPECT_OK(rank, ncclMemFree(nullptr));
}

// A program that finds ncclCommSuspend() calls it before it lets other programs use a device's
// memory.
void suspended_and_resumed(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  std::uint64_t value = 7;
  EXPECT_CODE(rank, ncclCommResume(comm), ncclInvalidUsage);
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclCommSuspend(comm, 1));
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_CODE(rank, ncclCommSuspend(comm, 1), ncclInvalidUsage);
  EXPECT_OK(rank, mem_stats(comm, 1, &value));
  EXPECT_THAT_IT(rank, value == 1, "not suspended");
  EXPECT_OK(rank, ncclCommResume(comm));
  for (const int statistic : {0, 1, 2, 3}) {
    EXPECT_OK(rank, mem_stats(comm, statistic, &value));
    EXPECT_THAT_IT(rank, value == 0, std::to_string(value));
  }
  EXPECT_CODE(rank, mem_stats(comm, 4, &value), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommSuspend(nullptr, 1), ncclInvalidArgument);
  check_sum(rank, comm, rank.size);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// C11: each rank has three threads. Each thread uses a communicator of its own, with all ranks.
void any_thread_may_call(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  std::vector<ncclComm_t> own(3);
  for (ncclComm_t& one : own) EXPECT_OK(rank, ncclCommSplit(comm, 0, 0, &one, nullptr));
  std::vector<std::thread> threads;
  for (const ncclComm_t one : own) {
    threads.emplace_back([&rank, one] {
      for (int i = 0; i < 50; ++i) {
        int value = i;
        EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, one, nullptr));
        EXPECT_THAT_IT(rank, value == i * rank.size, std::to_string(value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclComm_t one : own) EXPECT_OK(rank, ncclCommDestroy(one));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// L5: a process exits in time although it has not destroyed its communicators, as PyTorch often
// does. conformance.cc measures the time.
void nothing_is_destroyed(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  ncclComm_t child = nullptr;
  EXPECT_OK(rank, ncclCommSplit(comm, 0, 0, &child, nullptr));
  check_sum(rank, child, rank.size);
  check_sum(rank, comm, rank.size);
}

}  // namespace

std::vector<Case> life_cases() {
  return {{"library.version_is_nccls", version_is_nccls},
          {"communicators.facts", facts},
          {"communicators.calls_that_do_not_block", calls_that_do_not_block},
          {"communicators.grouped_calls_that_do_not_block", grouped_calls_that_do_not_block},
          {"communicators.finalize_twice", finalize_twice},
          {"communicators.split", split},
          {"communicators.split_inherits_the_config", split_inherits_the_config},
          {"communicators.shrink", shrink},
          {"communicators.scalable", scalable},
          {"communicators.registered_memory", registered_memory},
          {"communicators.suspended_and_resumed", suspended_and_resumed},
          {"communicators.any_thread_may_call", any_thread_may_call},
          {"library.nothing_is_destroyed", nothing_is_destroyed, Case::Needs::processes}};
}

}  // namespace conformance
