// Rules G1 to G8: groups of calls.
#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nccl/conformance.h"
#include "nccl/on_device.h"

namespace conformance {
namespace {

// Sums a 1 from each rank, which shows that the communicator works.
void check_sum(const Rank& rank, ncclComm_t comm) {
  int count = 0;
  EXPECT_OK(rank, ncclCommCount(comm, &count));
  int one = 1;
  EXPECT_OK(rank, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_THAT_IT(rank, one == count, std::to_string(one));
}

void depth_is_per_thread(const Rank& rank) {
  EXPECT_CODE(rank, ncclGroupEnd(), ncclInvalidUsage);
  const ncclComm_t comm = rank.connect();
  int value = 1;
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_THAT_IT(rank, value == 1, "an inner End began something");
  std::thread([&] { EXPECT_CODE(rank, ncclGroupEnd(), ncclInvalidUsage); }).join();
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_THAT_IT(rank, value == rank.size, std::to_string(value));
  EXPECT_CODE(rank, ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void first_error_cancels(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int value = 1;
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_CODE(rank, ncclBcast(&value, 1, ncclInt32, rank.size, comm, nullptr), ncclInvalidArgument);
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_CODE(rank, ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT_IT(rank, value == 1, "a cancelled group ran");
  check_sum(rank, comm);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void several_communicators_and_operations(const Rank& rank) {
  const ncclComm_t first = rank.connect();
  ncclComm_t second = nullptr;
  EXPECT_OK(rank, ncclCommSplit(first, 0, -rank.rank, &second, nullptr));
  constexpr int kOperations = 40;  // more than may be open at a time
  std::vector<int> values(2 * kOperations, 1);
  std::vector<float> gathered(static_cast<std::size_t>(rank.size));
  const float own = static_cast<float>(rank.rank);
  int stream = 0;  // any address serves as a stream
  EXPECT_OK(rank, ncclGroupStart());
  for (int i = 0; i < kOperations; ++i) {
    int* const a = &values[static_cast<std::size_t>(2 * i)];
    EXPECT_OK(rank, ncclAllReduce(a, a, 1, ncclInt32, ncclSum, first, nullptr));
    EXPECT_OK(rank, ncclAllReduce(a + 1, a + 1, 1, ncclInt32, ncclSum, second,
                                  reinterpret_cast<cudaStream_t>(&stream)));
  }
  EXPECT_OK(rank, ncclAllGather(&own, gathered.data(), 1, ncclFloat32, second, nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  for (const int value : values) EXPECT_THAT_IT(rank, value == rank.size, std::to_string(value));
  // The second communicator has the ranks in reverse order.
  EXPECT_THAT_IT(rank, gathered[0] == static_cast<float>(rank.size - 1),
                 std::to_string(gathered[0]));
  EXPECT_OK(rank, ncclCommDestroy(second));
  EXPECT_OK(rank, ncclCommDestroy(first));
}

void blocking_does_not_mix(const Rank& rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclComm_t blocking = rank.connect();
  const ncclComm_t other = rank.connect(config);
  int value = 1;
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, blocking, nullptr));
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, other, nullptr));
  EXPECT_CODE(rank, ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT_IT(rank, value == 1, "a refused group ran");
  EXPECT_OK(rank, ncclCommDestroy(other));
  EXPECT_OK(rank, ncclCommDestroy(blocking));
}

// One thread makes, uses, splits and ends the communicators of all ranks, in groups.
void one_thread_has_all_ranks(const Rank& rank) {
  if (rank.rank != 0) return;
  ncclUniqueId id;
  EXPECT_OK(rank, ncclGetUniqueId(&id));
  const auto size = static_cast<std::size_t>(rank.size);
  std::vector<ncclComm_t> comms(size);
  EXPECT_OK(rank, ncclGroupStart());
  for (int i = 0; i < rank.size; ++i)
    EXPECT_OK(rank, ncclCommInitRank(&comms[static_cast<std::size_t>(i)], rank.size, id, i));
  EXPECT_OK(rank, ncclGroupEnd());
  std::vector<int> values(size, 1);
  EXPECT_OK(rank, ncclGroupStart());
  for (std::size_t i = 0; i < size; ++i)
    EXPECT_OK(rank,
              ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_THAT_IT(rank, values.back() == rank.size, std::to_string(values.back()));
  std::vector<ncclComm_t> halves(size);
  EXPECT_OK(rank, ncclGroupStart());
  for (std::size_t i = 0; i < size; ++i)
    EXPECT_OK(rank, ncclCommSplit(comms[i], static_cast<int>(i % 2), 0, &halves[i], nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_OK(rank, ncclGroupStart());
  for (std::size_t i = 0; i < size; ++i) EXPECT_OK(rank, ncclCommFinalize(halves[size - 1 - i]));
  EXPECT_OK(rank, ncclGroupEnd());
  for (const ncclComm_t comm : halves) EXPECT_OK(rank, ncclCommDestroy(comm));
  // Ranks may abort in any order.
  EXPECT_OK(rank, ncclGroupStart());
  for (std::size_t i = 0; i < size; ++i) EXPECT_OK(rank, ncclCommAbort(comms[size - 1 - i]));
  EXPECT_OK(rank, ncclGroupEnd());
}

void init_all(const Rank& rank) {
  if (rank.rank != 0) return;
  const auto size = static_cast<std::size_t>(rank.size);
  std::vector<ncclComm_t> comms(size);
  std::vector<int> devices;
  for (int i = 0; i < rank.size; ++i) devices.push_back((rank.size - 1 - i) % device_count());
  EXPECT_OK(rank, ncclCommInitAll(comms.data(), rank.size, devices.data()));
  std::vector<int> values(size, 1);
  EXPECT_OK(rank, ncclGroupStart());
  for (std::size_t i = 0; i < size; ++i)
    EXPECT_OK(rank,
              ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  for (std::size_t i = 0; i < size; ++i) {
    int got = -1;
    EXPECT_OK(rank, ncclCommUserRank(comms[i], &got));
    EXPECT_THAT_IT(rank, got == static_cast<int>(i), std::to_string(got));
    EXPECT_OK(rank, ncclCommCuDevice(comms[i], &got));
    EXPECT_THAT_IT(rank, got == devices[i], std::to_string(got));
    EXPECT_THAT_IT(rank, values[i] == rank.size, std::to_string(values[i]));
  }
  for (const ncclComm_t comm : comms) EXPECT_OK(rank, ncclCommDestroy(comm));
}

// A message. Messages of one pair arrive in the order of their sends. Messages of different pairs
// may arrive in any order.
struct Parcel {
  bool send;
  int peer;
  int number;  // counts parcels of the pair and direction
};
constexpr int kParcelBytesMax = 5000;
int parcel_bytes(int from, int to, int number) {
  return number % 7 == 3 ? 0 : (from * 131 + to * 37 + number * 911) % kParcelBytesMax;
}
unsigned char parcel_byte(int from, int to, int number) {
  return static_cast<unsigned char>(from * 64 + to * 8 + number);
}

void exchange_parcels(const Rank& rank, ncclComm_t comm, int per_pair, unsigned seed) {
  std::vector<Parcel> parcels;
  for (int peer = 0; peer < rank.size; ++peer) {
    for (int number = 0; number < per_pair; ++number) {
      parcels.push_back({true, peer, number});
      parcels.push_back({false, peer, number});
    }
  }
  std::mt19937 random(seed + static_cast<unsigned>(rank.rank));
  std::shuffle(parcels.begin(), parcels.end(), random);
  std::vector<int> next(static_cast<std::size_t>(2 * rank.size));
  for (Parcel& one : parcels)
    one.number = next[static_cast<std::size_t>(2 * one.peer + (one.send ? 1 : 0))]++;
  std::vector<std::vector<unsigned char>> memory;
  EXPECT_OK(rank, ncclGroupStart());
  for (const Parcel& one : parcels) {
    const int from = one.send ? rank.rank : one.peer;
    const int to = one.send ? one.peer : rank.rank;
    const auto bytes = static_cast<std::size_t>(parcel_bytes(from, to, one.number));
    auto& data = memory.emplace_back(kParcelBytesMax);
    if (one.send) {
      std::fill(data.begin(), data.end(), parcel_byte(from, to, one.number));
      EXPECT_OK(rank, ncclSend(data.data(), bytes, ncclUint8, one.peer, comm, nullptr));
    } else {
      EXPECT_OK(rank, ncclRecv(data.data(), bytes, ncclUint8, one.peer, comm, nullptr));
    }
  }
  EXPECT_OK(rank, ncclGroupEnd());
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    const Parcel& one = parcels[i];
    if (one.send) continue;
    const auto bytes = static_cast<std::size_t>(parcel_bytes(one.peer, rank.rank, one.number));
    const unsigned char wanted = parcel_byte(one.peer, rank.rank, one.number);
    for (std::size_t at = 0; at < memory[i].size(); ++at) {
      const unsigned char expected = at < bytes ? wanted : 0;
      EXPECT_THAT_IT(rank, memory[i][at] == expected, "message " + std::to_string(one.number));
    }
  }
}

// G6, G7: groups of messages in any number and order, also with length 0.
void messages_of_any_order(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  for (const int per_pair : {1, 8, 16, 17, 64}) exchange_parcels(rank, comm, per_pair, 99);
  check_sum(rank, comm);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void messages_in_and_out_of_groups_match(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const int next = (rank.rank + 1) % rank.size;
  const int previous = (rank.rank + rank.size - 1) % rank.size;
  int out[2] = {rank.rank, rank.rank + 100};
  int in[2] = {-1, -1};
  if (rank.rank % 2 == 0) {
    EXPECT_OK(rank, ncclGroupStart());
    EXPECT_OK(rank, ncclSend(&out[0], 1, ncclInt32, next, comm, nullptr));
    EXPECT_OK(rank, ncclSend(&out[1], 1, ncclInt32, next, comm, nullptr));
    EXPECT_OK(rank, ncclRecv(&in[0], 1, ncclInt32, previous, comm, nullptr));
    EXPECT_OK(rank, ncclRecv(&in[1], 1, ncclInt32, previous, comm, nullptr));
    EXPECT_OK(rank, ncclGroupEnd());
  } else {
    EXPECT_OK(rank, ncclRecv(&in[0], 1, ncclInt32, previous, comm, nullptr));
    EXPECT_OK(rank, ncclRecv(&in[1], 1, ncclInt32, previous, comm, nullptr));
    EXPECT_OK(rank, ncclSend(&out[0], 1, ncclInt32, next, comm, nullptr));
    EXPECT_OK(rank, ncclSend(&out[1], 1, ncclInt32, next, comm, nullptr));
  }
  EXPECT_THAT_IT(rank, in[0] == previous && in[1] == previous + 100, std::to_string(in[0]));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// G7: collectives of length 0 do nothing, but their arguments are checked.
void nothing_to_do(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  EXPECT_CODE(
      rank,
      ncclAllReduce(nullptr, nullptr, 0, static_cast<ncclDataType_t>(12), ncclSum, comm, nullptr),
      ncclInvalidArgument);
  EXPECT_CODE(rank, ncclBroadcast(nullptr, nullptr, 0, ncclInt8, -1, comm, nullptr),
              ncclInvalidArgument);
  // Only one rank makes these calls, so none may wait for a peer.
  if (rank.rank == 0) {
    EXPECT_OK(rank, ncclAllReduce(nullptr, nullptr, 0, ncclInt8, ncclSum, comm, nullptr));
    EXPECT_OK(rank, ncclBroadcast(nullptr, nullptr, 0, ncclInt8, 0, comm, nullptr));
    EXPECT_OK(rank, ncclReduceScatter(nullptr, nullptr, 0, ncclInt8, ncclSum, comm, nullptr));
  }
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclGroupEnd());
  check_sum(rank, comm);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void reductions_are_copied_at_the_call(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  float factor = 2;
  ncclRedOp_t op = ncclSum;
  EXPECT_OK(rank,
            ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, comm));
  factor = 1000;
  float value = 1;
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclFloat32, op, comm, nullptr));
  EXPECT_OK(rank, ncclRedOpDestroy(op, comm));
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_THAT_IT(rank, value == 2 * static_cast<float>(rank.size), std::to_string(value));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

}  // namespace

std::vector<Case> group_cases() {
  return {{"groups.depth_is_per_thread", depth_is_per_thread},
          {"groups.first_error_cancels", first_error_cancels},
          {"groups.several_communicators_and_operations", several_communicators_and_operations},
          {"groups.blocking_does_not_mix", blocking_does_not_mix},
          {"groups.one_thread_has_all_ranks", one_thread_has_all_ranks},
          {"groups.init_all", init_all},
          {"groups.messages_of_any_order", messages_of_any_order},
          {"groups.messages_in_and_out_of_groups_match", messages_in_and_out_of_groups_match},
          {"groups.nothing_to_do", nothing_to_do},
          {"groups.reductions_are_copied_at_the_call", reductions_are_copied_at_the_call}};
}

}  // namespace conformance
