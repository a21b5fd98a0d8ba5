// Rules C4, C5, C8 and L5: dead peers, abort, forks.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "nccl/conformance.h"
#include "nccl/on_device.h"

namespace conformance {
namespace {

// Limit on the time of ncclCommAbort. Rule C5 permits 100 ms, but a busy machine needs longer.
constexpr double kAbortSeconds = 1.0;

// C4: an operation with a dead peer fails, and so does each later one. C5: abort waits for no peer.
void dead_peer(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int value = 1;
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  rank.barrier();
  if (rank.rank == rank.size - 1) ::_exit(0);
  EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
              ncclRemoteError);
  const std::string text = ncclGetLastError(comm);
  const std::string self = "rank " + std::to_string(rank.rank);
  EXPECT_THAT_IT(rank, text.find("AllReduce") != std::string::npos, text);
  EXPECT_THAT_IT(rank, text.find("rank") != std::string::npos, text);
  for (int i = 0; i < 3; ++i) {
    ncclResult_t code = ncclSuccess;
    EXPECT_OK(rank, ncclCommGetAsyncError(comm, &code));
    EXPECT_THAT_IT(rank, code == ncclRemoteError, std::to_string(code));
    EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
                ncclRemoteError);
  }
  const double took = seconds_of([&] { EXPECT_OK(rank, ncclCommAbort(comm)); });
  EXPECT_THAT_IT(rank, took < kAbortSeconds, std::to_string(took));
}

// C6: after a peer's death ncclCommDestroy does not hang, either.
void destroy_after_a_failure(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  rank.barrier();
  if (rank.rank == rank.size - 1) ::_exit(0);
  int value = 1;
  EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
              ncclRemoteError);
  const double took = seconds_of([&] { EXPECT_OK(rank, ncclCommDestroy(comm)); });
  EXPECT_THAT_IT(rank, took < 5, std::to_string(took));
}

// C8: the other ranks can shrink the communicator to one without the dead rank.
void shrink_without_the_dead(const Rank& rank) {
  if (rank.size < 3) return;
  const ncclComm_t comm = rank.connect();
  rank.barrier();
  int dead = rank.size - 1;
  if (rank.rank == dead) ::_exit(0);
  int value = 1;
  EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
              ncclRemoteError);
  ncclComm_t rest = nullptr;
  EXPECT_OK(rank, ncclCommShrink(comm, &dead, 1, &rest, nullptr, NCCL_SHRINK_ABORT));
  value = 1;
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, rest, nullptr));
  EXPECT_THAT_IT(rank, value == rank.size - 1, std::to_string(value));
  EXPECT_OK(rank, ncclCommDestroy(rest));
  EXPECT_OK(rank, ncclCommAbort(comm));
}

// C5: abort ends a call that waits for peers who never come, whatever the order of ranks.
void abort_ends_what_waits(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  std::atomic<bool> entered{false};
  ncclResult_t code = ncclSuccess;
  double took = 0;
  std::thread waiting([&] {
    int value = 1;
    entered = true;
    code = ncclRecv(&value, 1, ncclInt32, (rank.rank + 1) % rank.size, comm, nullptr);
  });
  while (!entered) std::this_thread::yield();
  rank.barrier();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(rank, ncclCommAbort(comm));
  waiting.join();
  took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_THAT_IT(rank, code != ncclSuccess, "a receive of nothing succeeded");
  EXPECT_THAT_IT(rank, took < kAbortSeconds, std::to_string(took));
  EXPECT_CODE(rank, ncclCommAbort(comm), ncclInvalidArgument);
}

// C5: a group fails if the communicator of one of its calls is aborted before ncclGroupEnd(). The
// communicators of its other calls still work.
void abort_ends_what_a_group_gathered(const Rank& rank) {
  const ncclComm_t other = rank.connect();
  for (const bool beside : {false, true}) {
    const ncclComm_t comm = rank.connect();
    int value = 1;
    int sum = 1;
    EXPECT_OK(rank, ncclGroupStart());
    if (beside) EXPECT_OK(rank, ncclAllReduce(&sum, &sum, 1, ncclInt32, ncclSum, other, nullptr));
    EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
    EXPECT_OK(rank, ncclCommAbort(comm));
    EXPECT_CODE(rank, ncclGroupEnd(), ncclInternalError);
    const std::string text = ncclGetLastError(nullptr);
    EXPECT_THAT_IT(rank, text.find("AllReduce") != std::string::npos, text);
    EXPECT_THAT_IT(rank, text.find("aborted") != std::string::npos, text);
    EXPECT_THAT_IT(rank, value == 1, std::to_string(value));
  }
  int one = 1;
  EXPECT_OK(rank, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, other, nullptr));
  EXPECT_THAT_IT(rank, one == rank.size, std::to_string(one));
  EXPECT_OK(rank, ncclCommDestroy(other));
}

// C5: abort also ends the wait for other ranks while a communicator is being made.
void abort_ends_a_join(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = rank.fresh_id();
  if (rank.rank == 0) {  // the others never come
    ncclComm_t comm = nullptr;
    EXPECT_CODE(rank, ncclCommInitRankConfig(&comm, rank.size, id, 0, &config), ncclInProgress);
    const double took = seconds_of([&] { EXPECT_OK(rank, ncclCommAbort(comm)); });
    EXPECT_THAT_IT(rank, took < kAbortSeconds, std::to_string(took));
  }
  rank.barrier();
}

// A failure in the background must have an error text, too, because with a non-blocking
// communicator no call returns the failure.
void failed_join_has_a_text(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = rank.fresh_id();
  ncclComm_t comm = nullptr;
  EXPECT_CODE(rank, ncclCommInitRankConfig(&comm, rank.size, id, 0, &config), ncclInProgress);
  const ncclResult_t code = settled(rank, comm);
  EXPECT_THAT_IT(rank, code != ncclSuccess, "all ranks were rank 0");
  const std::string text = ncclGetLastError(comm);
  EXPECT_THAT_IT(rank, text.find("rank 0") != std::string::npos, text);
  EXPECT_OK(rank, ncclCommAbort(comm));
  rank.barrier();
}

// nccl.h: revoking stops calls in progress. The communicator's state then becomes ncclSuccess, and
// it may be split, shrunk and destroyed. A waiting call may fail before its own rank revokes the
// communicator, because another rank has revoked it.
void revoked_ranks(const Rank& rank, int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  const ncclComm_t comm = rank.connect(config);
  int value = 1;
  std::atomic<bool> entered{false};
  std::thread waiting([&] {
    entered = true;
    if (rank.rank == 0) return;  // so that no rank's operation is done
    const ncclResult_t code = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr);
    // On a device the call returns ncclSuccess as soon as its work is in the stream. Later no code
    // reports that the call was stopped, because a revoked communicator's state is ncclSuccess.
    EXPECT_THAT_IT(rank, code != ncclSuccess || blocking == 0 || on_devices(),
                   "a sum without rank 0");
  });
  while (!entered) std::this_thread::yield();
  if (blocking == 0) waiting.join();
  rank.barrier();
  const ncclResult_t code = ncclCommRevoke(comm, 0);
  EXPECT_THAT_IT(rank, code == ncclSuccess || (code == ncclInProgress && blocking == 0),
                 std::to_string(code));
  if (blocking != 0) waiting.join();
  for (int i = 0; i < 3; ++i) EXPECT_OK(rank, settled(rank, comm));
  int one = 1;
  EXPECT_CODE(rank, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr),
              ncclInvalidUsage);
  EXPECT_CODE(rank, ncclCommFinalize(comm), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommRevoke(comm, 0), ncclInvalidArgument);
  const auto check = [&](ncclComm_t child, int size) {
    EXPECT_OK(rank, settled(rank, child));
    int sum = 1;
    const ncclResult_t issued = ncclAllReduce(&sum, &sum, 1, ncclInt32, ncclSum, child, nullptr);
    EXPECT_THAT_IT(rank, issued == ncclSuccess || issued == ncclInProgress, std::to_string(issued));
    EXPECT_OK(rank, settled(rank, child));
    EXPECT_THAT_IT(rank, sum == size, std::to_string(sum));
  };
  ncclComm_t half = nullptr;
  ncclComm_t rest = nullptr;
  (void)ncclCommSplit(comm, rank.rank % 2, 0, &half, nullptr);
  check(half, (rank.size + 1 - rank.rank % 2) / 2);
  int excluded = rank.size - 1;
  if (rank.rank != excluded) {
    (void)ncclCommShrink(comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT);
    check(rest, rank.size - 1);
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));  // the parent may go first
  check(half, (rank.size + 1 - rank.rank % 2) / 2);
  EXPECT_OK(rank, ncclCommDestroy(half));
  EXPECT_OK(rank, ncclCommDestroy(rest));
}

void revoked(const Rank& rank) {
  revoked_ranks(rank, 1);
}

void revoked_without_blocking(const Rank& rank) {
  revoked_ranks(rank, 0);
}

// L5: a forked child has none of the library's threads. Its calls return an error and do not hang.
void forked_child(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    int value = 1;
    EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr),
                ncclInvalidUsage);
    EXPECT_CODE(rank, ncclCommDestroy(comm), ncclInvalidUsage);
    // The child may make its own communicators.
    ncclUniqueId id;
    EXPECT_OK(rank, ncclGetUniqueId(&id));
    ncclComm_t own = nullptr;
    EXPECT_OK(rank, ncclCommInitRank(&own, 1, id, 0));
    EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, own, nullptr));
    EXPECT_OK(rank, ncclCommDestroy(own));
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_THAT_IT(rank, WIFEXITED(status) && WEXITSTATUS(status) == 0, std::to_string(status));
  int value = 1;
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_THAT_IT(rank, value == rank.size, std::to_string(value));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

}  // namespace

std::vector<Case> failure_cases() {
  using Needs = Case::Needs;
  return {{"communicators.dead_peer", dead_peer, Needs::processes},
          {"communicators.destroy_after_a_failure", destroy_after_a_failure, Needs::processes},
          {"communicators.shrink_without_the_dead", shrink_without_the_dead, Needs::processes},
          {"communicators.abort_ends_what_waits", abort_ends_what_waits},
          {"communicators.abort_ends_what_a_group_gathered", abort_ends_what_a_group_gathered},
          {"communicators.abort_ends_a_join", abort_ends_a_join},
          {"communicators.failed_join_has_a_text", failed_join_has_a_text},
          {"communicators.revoked", revoked},
          {"communicators.revoked_without_blocking", revoked_without_blocking},
          {"library.forked_child", forked_child, Needs::processes}};
}

}  // namespace conformance
