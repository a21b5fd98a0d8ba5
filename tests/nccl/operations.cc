// Tests every operation, type and reduction, in place and out of place (A3), sums that are rounded
// once (T1), and reductions that programs make (T2).
#include <algorithm>
#include <cmath>
#include <string>

#include "nccl/conformance.h"
#include "nccl/values.h"

namespace conformance {
namespace {

constexpr std::size_t kCounts[] = {1, 7, 1000, 20'011};
constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

ncclDataType_t type_at(int index) {
  return static_cast<ncclDataType_t>(index);
}

// Returns small numbers that every type represents exactly. Their sum over up to 8 ranks is at most
// 16.
double value_of(ncclRedOp_t op, int rank, int size, std::size_t index) {
  const auto step = static_cast<int>(index % 3);
  if (op == ncclProd) return (static_cast<std::size_t>(rank) + index) % 4 == 0 ? 2 : 1;
  // The mean must be a whole number, over all ranks and over each half of them.
  if (op == ncclAvg) return step + 2 * (size % 2 == 0 ? rank % 2 : rank);
  return (step + rank) % 3;
}

double reduced(ncclRedOp_t op, int size, std::size_t index) {
  double result = value_of(op, 0, size, index);
  for (int rank = 1; rank < size; ++rank) {
    const double value = value_of(op, rank, size, index);
    if (op == ncclSum || op == ncclAvg) result += value;
    if (op == ncclProd) result *= value;
    if (op == ncclMax) result = std::max(result, value);
    if (op == ncclMin) result = std::min(result, value);
  }
  return op == ncclAvg ? result / size : result;
}

std::string what(const char* name, ncclDataType_t type, std::size_t index, double got,
                 double wanted) {
  return std::string(name) + ", type " + std::to_string(type) + ", element " +
         std::to_string(index) + " is " + std::to_string(got) + ", not " + std::to_string(wanted);
}

// Compares `count` elements of `got`, from `offset` on, with the right reduction from element
// `first` on.
void check_reduced(const Rank& rank, const char* name, const Elements& got, std::size_t offset,
                   ncclDataType_t type, ncclRedOp_t op, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = rounded(type, reduced(op, rank.size, first + i));
    EXPECT_THAT_IT(rank, got[offset + i] == wanted, what(name, type, i, got[offset + i], wanted));
  }
}

Elements contribution(ncclDataType_t type, ncclRedOp_t op, const Rank& rank, std::size_t count) {
  Elements out(type, count);
  for (std::size_t i = 0; i < count; ++i) out.set(i, value_of(op, rank.rank, rank.size, i));
  return out;
}

template <typename Call>
void for_each_reduction(const Call& call) {
  for (int type = 0; type < kTypes; ++type) {
    for (const ncclRedOp_t op : kOps) {
      for (const std::size_t count : kCounts) call(type_at(type), op, count);
    }
  }
}

void all_reduce(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  for_each_reduction([&](ncclDataType_t type, ncclRedOp_t op, std::size_t count) {
    Elements in = contribution(type, op, rank, count);
    Elements out(type, count);
    EXPECT_OK(rank, ncclAllReduce(in.data(), out.data(), count, type, op, comm, nullptr));
    check_reduced(rank, "AllReduce", out, 0, type, op, 0, count);
    EXPECT_OK(rank, ncclAllReduce(in.data(), in.data(), count, type, op, comm, nullptr));
    check_reduced(rank, "AllReduce in place", in, 0, type, op, 0, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void reduce_scatter(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  const auto self = static_cast<std::size_t>(rank.rank);
  for_each_reduction([&](ncclDataType_t type, ncclRedOp_t op, std::size_t count) {
    Elements in = contribution(type, op, rank, count * size);
    Elements out(type, count);
    EXPECT_OK(rank, ncclReduceScatter(in.data(), out.data(), count, type, op, comm, nullptr));
    check_reduced(rank, "ReduceScatter", out, 0, type, op, self * count, count);
    void* const own = in.at(self * count);
    EXPECT_OK(rank, ncclReduceScatter(in.data(), own, count, type, op, comm, nullptr));
    check_reduced(rank, "ReduceScatter in place", in, self * count, type, op, self * count, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void reduce(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int root = 0;
  for_each_reduction([&](ncclDataType_t type, ncclRedOp_t op, std::size_t count) {
    root = (root + 1) % rank.size;
    const bool is_root = rank.rank == root;
    Elements in = contribution(type, op, rank, count);
    Elements out(type, count);
    // Ranks other than the root need no memory for the result.
    EXPECT_OK(rank, ncclReduce(in.data(), is_root ? out.data() : nullptr, count, type, op, root,
                               comm, nullptr));
    if (is_root) check_reduced(rank, "Reduce", out, 0, type, op, 0, count);
    EXPECT_OK(rank, ncclReduce(in.data(), in.data(), count, type, op, root, comm, nullptr));
    if (is_root) check_reduced(rank, "Reduce in place", in, 0, type, op, 0, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// Returns element `index` of one rank's block, for calls that only move data.
double mark(int rank, std::size_t block, std::size_t index) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 5 + block * 3 + index) % 8);
}

Elements blocks_of(ncclDataType_t type, int rank, std::size_t blocks, std::size_t count) {
  Elements out(type, blocks * count);
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < count; ++i) out.set(block * count + i, mark(rank, block, i));
  }
  return out;
}

void check_block(const Rank& rank, const char* name, const Elements& got, std::size_t at,
                 ncclDataType_t type, int source, std::size_t block, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = mark(source, block, i);
    EXPECT_THAT_IT(rank, got[at * count + i] == wanted,
                   what(name, type, i, got[at * count + i], wanted));
  }
}

template <typename Call>
void for_each_move(const Call& call) {
  for (int type = 0; type < kTypes; ++type) {
    for (const std::size_t count : kCounts) call(type_at(type), count);
  }
}

void broadcast(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  int root = 0;
  for_each_move([&](ncclDataType_t type, std::size_t count) {
    root = (root + 1) % rank.size;
    Elements in = blocks_of(type, rank.rank, 1, count);
    Elements out(type, count);
    const void* const send = rank.rank == root ? in.data() : nullptr;
    EXPECT_OK(rank, ncclBroadcast(send, out.data(), count, type, root, comm, nullptr));
    check_block(rank, "Broadcast", out, 0, type, root, 0, count);
    EXPECT_OK(rank, ncclBcast(in.data(), count, type, root, comm, nullptr));
    check_block(rank, "Bcast", in, 0, type, root, 0, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void all_gather(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  for_each_move([&](ncclDataType_t type, std::size_t count) {
    Elements in = blocks_of(type, rank.rank, 1, count);
    Elements out(type, size * count);
    EXPECT_OK(rank, ncclAllGather(in.data(), out.data(), count, type, comm, nullptr));
    for (int from = 0; from < rank.size; ++from)
      check_block(rank, "AllGather", out, static_cast<std::size_t>(from), type, from, 0, count);
    Elements both(type, size * count);
    const std::size_t own = static_cast<std::size_t>(rank.rank) * count;
    for (std::size_t i = 0; i < count; ++i) both.set(own + i, in[i]);
    EXPECT_OK(rank, ncclAllGather(both.at(own), both.data(), count, type, comm, nullptr));
    for (int from = 0; from < rank.size; ++from)
      check_block(rank, "AllGather in place", both, static_cast<std::size_t>(from), type, from, 0,
                  count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void all_to_all(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  for_each_move([&](ncclDataType_t type, std::size_t count) {
    Elements in = blocks_of(type, rank.rank, size, count);
    Elements out(type, size * count);
    EXPECT_OK(rank, ncclAlltoAll(in.data(), out.data(), count, type, comm, nullptr));
    for (int from = 0; from < rank.size; ++from)
      check_block(rank, "AlltoAll", out, static_cast<std::size_t>(from), type, from,
                  static_cast<std::size_t>(rank.rank), count);
    // NCCL does not document AlltoAll in place, but nccl-tests use it.
    EXPECT_OK(rank, ncclAlltoAll(in.data(), in.data(), count, type, comm, nullptr));
    for (int from = 0; from < rank.size; ++from)
      check_block(rank, "AlltoAll in place", in, static_cast<std::size_t>(from), type, from,
                  static_cast<std::size_t>(rank.rank), count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void gather(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  int root = 0;
  for_each_move([&](ncclDataType_t type, std::size_t count) {
    root = (root + 1) % rank.size;
    const bool is_root = rank.rank == root;
    Elements in = blocks_of(type, rank.rank, 1, count);
    Elements out(type, size * count);
    // With odd counts the root's own block is in place.
    const bool in_place = is_root && count % 2 == 1;
    const std::size_t own = static_cast<std::size_t>(root) * count;
    for (std::size_t i = 0; in_place && i < count; ++i) out.set(own + i, in[i]);
    EXPECT_OK(rank, ncclGather(in_place ? out.at(own) : in.data(), is_root ? out.data() : nullptr,
                               count, type, root, comm, nullptr));
    for (int from = 0; is_root && from < rank.size; ++from)
      check_block(rank, "Gather", out, static_cast<std::size_t>(from), type, from, 0, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void scatter(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  int root = 0;
  for_each_move([&](ncclDataType_t type, std::size_t count) {
    root = (root + 1) % rank.size;
    const bool is_root = rank.rank == root;
    const bool in_place = is_root && count % 2 == 1;
    Elements in = blocks_of(type, rank.rank, size, count);
    Elements out(type, count);
    void* const own = in.at(static_cast<std::size_t>(root) * count);
    EXPECT_OK(rank, ncclScatter(is_root ? in.data() : nullptr, in_place ? own : out.data(), count,
                                type, root, comm, nullptr));
    const auto self = static_cast<std::size_t>(rank.rank);
    check_block(rank, "Scatter", in_place ? in : out, in_place ? self : 0, type, root, self, count);
  });
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// T1: sums of 16-bit and 8-bit floats are made in float32 and rounded once. If FP8 rounded every
// step, 1 + 2^-4 + 2^-4 + ... would stay 1.
void sums_are_rounded_once(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const struct {
    ncclDataType_t type;
    double small;  // half a step above 1: a tie, which goes to the even 1
  } kCases[] = {{ncclFloat8e4m3, 0x1p-4},
                {ncclFloat8e5m2, 0x1p-3},
                {ncclFloat16, 0x1p-11},
                {ncclBfloat16, 0x1p-8}};
  for (const auto& one : kCases) {
    Elements data(one.type, 40, rank.rank == 0 ? 1.0 : one.small);
    EXPECT_OK(rank, ncclAllReduce(data.data(), data.data(), data.size(), one.type, ncclSum, comm,
                                  nullptr));
    const double wanted = rounded(one.type, 1.0 + (rank.size - 1) * one.small);
    EXPECT_THAT_IT(rank, data[39] == wanted, what("sum", one.type, 39, data[39], wanted));
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// T1: if one of two values is a NaN, max and min give the other value, as NCCL's kernels do, in
// every floating type.
void max_and_min_leave_nan_out(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const double nan = std::nan("");
  for (const ncclDataType_t type :
       {ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2}) {
    for (const ncclRedOp_t op : {ncclMax, ncclMin}) {
      // Each element i below `size` is a NaN on rank i only. Element `size` is a NaN on all ranks,
      // and the last element on no rank.
      const auto size = static_cast<std::size_t>(rank.size);
      Elements values(type, size + 2);
      for (std::size_t i = 0; i < size + 2; ++i) {
        const bool is_nan = i == size || i == static_cast<std::size_t>(rank.rank);
        values.set(i, is_nan ? nan : rank.rank - 1);
      }
      EXPECT_OK(rank,
                ncclAllReduce(values.data(), values.data(), size + 2, type, op, comm, nullptr));
      for (std::size_t i = 0; i < size + 2; ++i) {
        const std::size_t last = size - 1;
        const double greatest = static_cast<double>(i == last ? last - 1 : last) - 1;
        const double least = i == 0 ? 0 : -1;
        const double wanted = op == ncclMax ? greatest : least;
        EXPECT_THAT_IT(rank, i == size ? std::isnan(values[i]) : values[i] == wanted,
                       what(op == ncclMax ? "max" : "min", type, i, values[i], wanted));
      }
    }
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// T1: integer averages are truncated towards 0. Rank 0 contributes -1 - size and others 0, so the
// average -1 - 1 / size becomes -1.
void integer_averages_truncate(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  Elements data(ncclInt32, 3, rank.rank == 0 ? -1 - rank.size : 0);
  EXPECT_OK(rank, ncclAllReduce(data.data(), data.data(), 3, ncclInt32, ncclAvg, comm, nullptr));
  EXPECT_THAT_IT(rank, data[1] == -1, what("avg", ncclInt32, 1, data[1], -1));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// T2: premultiplied sums with factors of every type, which differ between even and odd ranks. The
// library reads a factor when the operation is made, or only later in device memory.
void pre_mul_sum(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  for (int index = 0; index < kTypes; ++index) {
    const ncclDataType_t type = type_at(index);
    for (const auto residence : {ncclScalarHostImmediate, ncclScalarDevice}) {
      Elements factor(type, 1, rank.rank % 2 + 1);
      ncclRedOp_t op = ncclSum;
      EXPECT_OK(rank, ncclRedOpCreatePreMulSum(&op, factor.data(), type, residence, comm));
      EXPECT_THAT_IT(rank, op >= ncclNumOps, std::to_string(op));
      Elements data(type, 33, 1);
      EXPECT_OK(rank, ncclAllReduce(data.data(), data.data(), 33, type, op, comm, nullptr));
      const double wanted = rank.size / 2 * 3 + rank.size % 2;
      EXPECT_THAT_IT(rank, data[32] == wanted, what("PreMulSum", type, 32, data[32], wanted));
      EXPECT_OK(rank, ncclRedOpDestroy(op, comm));
      EXPECT_CODE(rank, ncclRedOpDestroy(op, comm), ncclInvalidArgument);
      EXPECT_CODE(rank, ncclAllReduce(data.data(), data.data(), 33, type, op, comm, nullptr),
                  ncclInvalidArgument);
    }
  }
  float factor = 2;
  ncclRedOp_t op = ncclSum;
  EXPECT_OK(rank,
            ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, comm));
  double other = 1;
  EXPECT_CODE(rank, ncclAllReduce(&other, &other, 1, ncclFloat64, op, comm, nullptr),
              ncclInvalidArgument);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// A4: with one rank, calls copy the data and apply the reduction.
void one_rank(const Rank& rank) {
  if (rank.rank != 0) return;
  ncclUniqueId id;
  EXPECT_OK(rank, ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  EXPECT_OK(rank, ncclCommInitRank(&comm, 1, id, 0));
  const Rank alone{0, 1, rank.shared, rank.processes};
  for (const ncclRedOp_t op : kOps) {
    Elements in(ncclFloat32, 100, 3);
    Elements out(ncclFloat32, 100);
    EXPECT_OK(alone, ncclAllReduce(in.data(), out.data(), 100, ncclFloat32, op, comm, nullptr));
    EXPECT_THAT_IT(alone, out[99] == 3, std::to_string(out[99]));
    Elements second(ncclFloat32, 100);
    EXPECT_OK(alone,
              ncclReduceScatter(in.data(), second.data(), 100, ncclFloat32, op, comm, nullptr));
    EXPECT_THAT_IT(alone, second[99] == 3, std::to_string(second[99]));
  }
  Elements in(ncclInt32, 10, 5);
  Elements out(ncclInt32, 10);
  EXPECT_OK(alone, ncclAllGather(in.data(), out.data(), 10, ncclInt32, comm, nullptr));
  EXPECT_THAT_IT(alone, out[9] == 5, std::to_string(out[9]));
  Elements moved(ncclInt32, 10);
  EXPECT_OK(alone, ncclAlltoAll(in.data(), moved.data(), 10, ncclInt32, comm, nullptr));
  EXPECT_THAT_IT(alone, moved[9] == 5, std::to_string(moved[9]));
  int factor = 7;
  ncclRedOp_t op = ncclSum;
  EXPECT_OK(alone,
            ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, comm));
  EXPECT_OK(alone, ncclAllReduce(in.data(), out.data(), 10, ncclInt32, op, comm, nullptr));
  EXPECT_THAT_IT(alone, out[9] == 35, std::to_string(out[9]));
  EXPECT_OK(alone, ncclCommDestroy(comm));
}

}  // namespace

std::vector<Case> operation_cases() {
  return {{"operations.all_reduce", all_reduce},
          {"operations.reduce_scatter", reduce_scatter},
          {"operations.reduce", reduce},
          {"operations.broadcast", broadcast},
          {"operations.all_gather", all_gather},
          {"operations.all_to_all", all_to_all},
          {"operations.gather", gather},
          {"operations.scatter", scatter},
          {"types.sums_are_rounded_once", sums_are_rounded_once},
          {"types.max_and_min_leave_nan_out", max_and_min_leave_nan_out},
          {"types.integer_averages_truncate", integer_averages_truncate},
          {"types.pre_mul_sum", pre_mul_sum},
          {"arguments.one_rank", one_rank}};
}

}  // namespace conformance
