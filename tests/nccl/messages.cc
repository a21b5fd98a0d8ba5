// Messages between some of the ranks, followed by collectives of all ranks. Ranks have then made
// different numbers of calls. So the number that a rank gives a collective must not count messages.
#include <string>
#include <vector>

#include "nccl/conformance.h"

namespace conformance {
namespace {

constexpr std::size_t kCount = 100;

void check_sums(const Rank& rank, ncclComm_t comm) {
  int size = 0;
  EXPECT_OK(rank, ncclCommCount(comm, &size));
  for (int i = 0; i < 3; ++i) {
    std::vector<int> values(kCount, 1);
    EXPECT_OK(rank, ncclAllReduce(values.data(), values.data(), kCount, ncclInt32, ncclSum, comm,
                                  nullptr));
    EXPECT_THAT_IT(rank, values[0] == size && values.back() == size, std::to_string(values[0]));
  }
}

void send_to(const Rank& rank, ncclComm_t comm, int to, int value) {
  const std::vector<int> values(kCount, value);
  EXPECT_OK(rank, ncclSend(values.data(), kCount, ncclInt32, to, comm, nullptr));
}

void receive_from(const Rank& rank, ncclComm_t comm, int from, int value) {
  std::vector<int> values(kCount);
  EXPECT_OK(rank, ncclRecv(values.data(), kCount, ncclInt32, from, comm, nullptr));
  EXPECT_THAT_IT(rank, values[0] == value && values.back() == value, std::to_string(values[0]));
}

// Rank 0 sends rank 1 one message, later five. Other ranks send nothing. All ranks make
// collectives after the first message, and again after the five.
void of_two_ranks(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  for (const int messages : {1, 5}) {
    for (int i = 0; i < messages; ++i) {
      if (rank.rank == 0) send_to(rank, comm, 1, i);
      if (rank.rank == 1) receive_from(rank, comm, 0, i);
    }
    check_sums(rank, comm);
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// Rank 0 sends two messages in one ncclGroup, and the last rank receives them in single calls. Then
// all ranks split the communicator.
void grouped_against_single(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const int last = rank.size - 1;
  if (rank.rank == 0) {
    EXPECT_OK(rank, ncclGroupStart());
    const std::vector<std::vector<int>> values = {std::vector<int>(kCount, 7),
                                                  std::vector<int>(kCount, 8)};
    for (const auto& one : values)
      EXPECT_OK(rank, ncclSend(one.data(), kCount, ncclInt32, last, comm, nullptr));
    EXPECT_OK(rank, ncclGroupEnd());
  }
  if (rank.rank == last) {
    receive_from(rank, comm, 0, 7);
    receive_from(rank, comm, 0, 8);
  }
  ncclComm_t child = nullptr;
  EXPECT_OK(rank, ncclCommSplit(comm, 0, -rank.rank, &child, nullptr));
  check_sums(rank, child);
  check_sums(rank, comm);
  EXPECT_OK(rank, ncclCommDestroy(child));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// A pipeline: each rank passes on what it received. The first rank only sends and the last only
// receives, so they make half as many calls as the ranks between them.
void along_a_pipeline(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  for (int batch = 0; batch < 4; ++batch) {
    if (rank.rank > 0) receive_from(rank, comm, rank.rank - 1, batch);
    if (rank.rank + 1 < rank.size) send_to(rank, comm, rank.rank + 1, batch);
  }
  check_sums(rank, comm);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// Messages and collectives take turns. Each rank with an even number sends to the next even rank
// and receives from the even rank before it, in one ncclGroup. Then all ranks make collectives.
void between_collectives(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const int evens = (rank.size + 1) / 2;
  for (int round = 0; round < 3; ++round) {
    if (rank.rank % 2 == 0) {
      const int index = rank.rank / 2;
      const int own = 10 * round + rank.rank;
      int got = -1;
      EXPECT_OK(rank, ncclGroupStart());
      EXPECT_OK(rank, ncclSend(&own, 1, ncclInt32, 2 * ((index + 1) % evens), comm, nullptr));
      EXPECT_OK(rank,
                ncclRecv(&got, 1, ncclInt32, 2 * ((index + evens - 1) % evens), comm, nullptr));
      EXPECT_OK(rank, ncclGroupEnd());
      EXPECT_THAT_IT(rank, got == 10 * round + 2 * ((index + evens - 1) % evens),
                     std::to_string(got));
    }
    int value = rank.rank == round % rank.size ? round : -1;
    EXPECT_OK(rank, ncclBcast(&value, 1, ncclInt32, round % rank.size, comm, nullptr));
    EXPECT_THAT_IT(rank, value == round, std::to_string(value));
    check_sums(rank, comm);
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

}  // namespace

std::vector<Case> message_cases() {
  return {{"messages.of_two_ranks", of_two_ranks},
          {"messages.grouped_against_single", grouped_against_single},
          {"messages.along_a_pipeline", along_a_pipeline},
          {"messages.between_collectives", between_collectives}};
}

}  // namespace conformance
