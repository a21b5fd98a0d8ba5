// Hops done by hand, in ordinary memory: together they do what one operation of all ranks does.
#include "interop/nccl/hierarchy/hops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace leeway::nccl {
namespace {

using Values = std::vector<double>;

double combined(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::min:
      return std::min(a, b);
    default:
      return a + b;
  }
}

// One rank's part of a collective of a few ranks.
struct Part {
  Kind kind = Kind::all_reduce;
  const double* send = nullptr;
  double* receive = nullptr;
  std::size_t count = 0;
  std::size_t pitch = 0;
  ReduceOp op = ReduceOp::sum;
  std::size_t root = 0;
  double factor = 1;
  double weight = 1;
};

Values reduced(const std::vector<Part>& parts, std::size_t count) {
  const ReduceOp op = parts.front().op;
  Values result(count);
  double weights = 0;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    weights += parts[rank].weight;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = parts[rank].send[i] * parts[rank].factor;
      result[i] = rank == 0 ? value : combined(op, result[i], value);
    }
  }
  for (double& value : result) value = op == ReduceOp::avg ? value / weights : value;
  return result;
}

// Performs a call as a library does; parts[i] is of rank i.
void perform(const std::vector<Part>& parts) {
  const Part& first = parts.front();
  const std::size_t size = parts.size();
  const std::size_t count = first.count;
  Values result;
  if (reduces(first.kind))
    result = reduced(parts, first.kind == Kind::reduce_scatter ? count * size : count);
  if (first.kind == Kind::all_gather) {
    for (const Part& one : parts) result.insert(result.end(), one.send, one.send + count);
  }
  if (first.kind == Kind::gather) {
    for (const Part& one : parts) result.insert(result.end(), one.send, one.send + count);
  }
  if (first.kind == Kind::broadcast || first.kind == Kind::scatter) {
    const double* const data = parts[first.root].send;
    result.assign(data, data + (first.kind == Kind::scatter ? size * count : count));
  }
  for (std::size_t rank = 0; rank < size; ++rank) {
    double* const to = parts[rank].receive;
    const bool to_root = first.kind == Kind::reduce || first.kind == Kind::gather;
    if (to_root && rank != first.root) continue;
    if (first.kind == Kind::reduce_scatter || first.kind == Kind::scatter) {
      std::copy_n(&result[rank * count], count, to);
    } else if (first.kind == Kind::all_gather || first.kind == Kind::gather) {
      const std::size_t pitch = parts[rank].pitch == 0 ? count : parts[rank].pitch;
      for (std::size_t block = 0; block < size; ++block)
        std::copy_n(&result[block * count], count, to + block * pitch);
    } else {
      std::copy(result.begin(), result.end(), to);
    }
  }
}

// Messages of a group: those of one pair of ranks are matched in their order.
void exchange(const std::vector<std::vector<InnerCall>>& calls) {
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      const auto between = [&](std::size_t rank, Kind kind, std::size_t peer) {
        std::vector<InnerCall> found;
        for (const InnerCall& one : calls[rank]) {
          if (one.kind == kind && static_cast<std::size_t>(one.peer) == peer) found.push_back(one);
        }
        return found;
      };
      const auto sent = between(from, Kind::send, to);
      const auto received = between(to, Kind::recv, from);
      ASSERT_EQ(sent.size(), received.size()) << from << " to " << to;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        ASSERT_EQ(sent[i].count, received[i].count);
        std::copy_n(static_cast<const double*>(sent[i].send), sent[i].count,
                    static_cast<double*>(received[i].receive));
      }
    }
  }
}

Part part_of(const InnerCall& call) {
  return {.kind = call.kind,
          .send = static_cast<const double*>(call.send),
          .receive = static_cast<double*>(call.receive),
          .count = call.count,
          .op = call.op,
          .root = static_cast<std::size_t>(call.peer),
          .factor = call.op == ReduceOp::premul_sum ? call.factor.as<double>() : 1};
}

Part part_of(const Operation& operation) {
  return {.kind = operation.kind,
          .send = static_cast<const double*>(operation.send),
          .receive = static_cast<double*>(operation.receive),
          .count = operation.count,
          .pitch = operation.pitch,
          .op = operation.options.op,
          .root = operation.peer,
          .weight = operation.options.weight};
}

// All ranks of a group of `count` nodes with `each` ranks.
class Group {
 public:
  Group(int count, int each) : count_(count), each_(each) {}
  int size() const { return count_ * each_; }

  Nodes nodes_of(int rank) const {
    Nodes nodes;
    nodes.count = count_;
    nodes.each = each_;
    nodes.node = rank / each_;
    nodes.local = rank % each_;
    for (int i = 0; i < size(); ++i) nodes.ranks.push_back(i);
    return nodes;
  }

  // operations[i] is of rank i.
  void run(const std::vector<Operation>& operations) const {
    std::vector<Values> scratch(operations.size());
    std::vector<Hops> hops;
    for (int rank = 0; rank < size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const Nodes nodes = nodes_of(rank);
      ASSERT_TRUE(has_hops(operations[index], nodes));
      scratch[index].resize(scratch_bytes(operations[index], nodes) / sizeof(double));
      hops.push_back(hops_of(operations[index], nodes, scratch[index].data()));
    }
    run_inside(hops, &Hops::before);
    run_between(hops);
    run_inside(hops, &Hops::after);
  }

 private:
  void run_inside(const std::vector<Hops>& hops, std::vector<InnerCall> Hops::*calls) const {
    for (int node = 0; node < count_; ++node) {
      const std::size_t first = static_cast<std::size_t>(node * each_);
      std::vector<std::vector<InnerCall>> collectives;
      std::vector<std::vector<InnerCall>> messages;
      for (std::size_t i = 0; i < static_cast<std::size_t>(each_); ++i) {
        collectives.emplace_back();
        messages.emplace_back();
        for (const InnerCall& one : hops[first + i].*calls)
          (is_message(one.kind) ? messages : collectives).back().push_back(one);
      }
      for (std::size_t call = 0; call < collectives.front().size(); ++call) {
        std::vector<Part> parts;
        for (const auto& of_rank : collectives) {
          ASSERT_EQ(of_rank.size(), collectives.front().size());
          parts.push_back(part_of(of_rank[call]));
        }
        perform(parts);
      }
      exchange(messages);
    }
  }
  void run_between(const std::vector<Hops>& hops) const {
    for (int local = 0; local < each_; ++local) {
      std::vector<Part> parts;
      for (int node = 0; node < count_; ++node) {
        const Hops& one = hops[static_cast<std::size_t>(node * each_ + local)];
        if (!one.between) continue;
        EXPECT_EQ(one.between->among, Operation::Among::peers);
        parts.push_back(part_of(*one.between));
      }
      if (!parts.empty()) perform(parts);
    }
  }

  const int count_;
  const int each_;
};

double value_of(int rank, std::size_t index) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 7 + index * 3) % 5 + 1);
}

Values values_of(int rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

// Memory of all ranks, and their operations over it.
struct Ranks {
  std::vector<Values> send;
  std::vector<Values> receive;
  std::vector<Operation> operations;

  Ranks(int size, Kind kind, ReduceOp op, std::size_t count, std::size_t in, std::size_t out) {
    for (int rank = 0; rank < size; ++rank) {
      send.push_back(values_of(rank, in));
      receive.emplace_back(out, -1.0);
    }
    for (std::size_t rank = 0; rank < send.size(); ++rank) {
      Operation& one = operations.emplace_back();
      one.kind = kind;
      one.send = send[rank].data();
      one.receive = receive[rank].data();
      one.count = count;
      one.type = DataType::f64;
      one.options.op = op;
    }
  }
  // The results without hops.
  std::vector<Values> wanted() const {
    std::vector<Values> out = receive;
    std::vector<Part> parts;
    for (std::size_t rank = 0; rank < operations.size(); ++rank) {
      Part& one = parts.emplace_back(part_of(operations[rank]));
      one.receive = out[rank].data();
      if (one.op == ReduceOp::premul_sum) one.factor = operations[rank].options.factor.as<double>();
    }
    perform(parts);
    return out;
  }
};

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max,
                             ReduceOp::min, ReduceOp::avg,  ReduceOp::premul_sum};
constexpr std::size_t kScattered = kScatteredBytesMin / sizeof(double);
constexpr std::size_t kCounts[] = {1, 5, 1000, kScattered, kScattered + 1, kScattered + 7, 40'013};
constexpr struct {
  int count;
  int each;
} kGroups[] = {{2, 2}, {2, 4}, {3, 2}, {2, 3}, {4, 1}};

void for_each(const std::function<void(const Group&, ReduceOp, std::size_t count)>& check) {
  for (const auto& [nodes, each] : kGroups) {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : kCounts) {
        SCOPED_TRACE(std::to_string(nodes) + " nodes of " + std::to_string(each) + ", " +
                     std::string(to_string(op)) + " of " + std::to_string(count));
        check(Group(nodes, each), op, count);
      }
    }
  }
}

void expect_near(const std::vector<Values>& got, const std::vector<Values>& wanted) {
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    for (std::size_t i = 0; i < got[rank].size(); ++i)
      ASSERT_NEAR(got[rank][i], wanted[rank][i], 1e-9 * std::abs(wanted[rank][i]))
          << rank << ", " << i;
  }
}

TEST(NcclHops, AnAllReduceIsThatOfAllRanks) {
  for_each([](const Group& group, ReduceOp op, std::size_t count) {
    Ranks ranks(group.size(), Kind::all_reduce, op, count, count, count);
    for (std::size_t i = 0; i < ranks.operations.size(); ++i)
      if (op == ReduceOp::premul_sum) ranks.operations[i].options.factor = i % 2 == 0 ? 2.0 : 0.5;
    const std::vector<Values> wanted = ranks.wanted();
    group.run(ranks.operations);
    expect_near(ranks.receive, wanted);
    // In place.
    for (std::size_t i = 0; i < ranks.operations.size(); ++i)
      ranks.operations[i].receive = ranks.send[i].data();
    group.run(ranks.operations);
    expect_near(ranks.send, wanted);
  });
}

TEST(NcclHops, AReduceScatterIsThatOfAllRanks) {
  for_each([](const Group& group, ReduceOp op, std::size_t count) {
    const auto size = static_cast<std::size_t>(group.size());
    Ranks ranks(group.size(), Kind::reduce_scatter, op, count, count * size, count);
    const std::vector<Values> before = ranks.send;
    const std::vector<Values> wanted = ranks.wanted();
    group.run(ranks.operations);
    expect_near(ranks.receive, wanted);
    EXPECT_EQ(ranks.send, before) << "the input is the program's";
  });
}

TEST(NcclHops, AnAllGatherIsThatOfAllRanks) {
  for_each([](const Group& group, ReduceOp op, std::size_t count) {
    if (op != ReduceOp::sum) return;
    const auto size = static_cast<std::size_t>(group.size());
    Ranks ranks(group.size(), Kind::all_gather, op, count, count, count * size);
    const std::vector<Values> wanted = ranks.wanted();
    group.run(ranks.operations);
    expect_near(ranks.receive, wanted);
  });
}

// Every rank is the root once. Memory of the others has no meaning, as the drop-in says.
void for_each_root(Kind kind,
                   const std::function<std::size_t(std::size_t count, std::size_t size)>& in,
                   const std::function<std::size_t(std::size_t count, std::size_t size)>& out) {
  for_each([&](const Group& group, ReduceOp op, std::size_t count) {
    const bool short_or_long = count == 5 || count == kScattered + 7;  // whole, and in parts
    if (!short_or_long || (op != ReduceOp::sum && !reduces(kind))) return;
    const auto size = static_cast<std::size_t>(group.size());
    const bool from_root = kind == Kind::broadcast || kind == Kind::scatter;
    for (std::size_t root = 0; root < size; ++root) {
      Ranks ranks(group.size(), kind, op, count, in(count, size), out(count, size));
      for (std::size_t i = 0; i < size; ++i) {
        Operation& one = ranks.operations[i];
        one.peer = static_cast<leeway::Rank>(root);
        if (op == ReduceOp::premul_sum) one.options.factor = i % 2 == 0 ? 2.0 : 0.5;
      }
      std::vector<Values> wanted = ranks.wanted();
      for (std::size_t i = 0; i < size; ++i) {
        if (i == root) continue;
        if (from_root) ranks.operations[i].send = nullptr;
        if (!from_root) ranks.operations[i].receive = nullptr;
      }
      group.run(ranks.operations);
      expect_near(ranks.receive, wanted);
    }
  });
}

std::size_t one_block(std::size_t count, std::size_t) {
  return count;
}
std::size_t all_blocks(std::size_t count, std::size_t size) {
  return count * size;
}

TEST(NcclHops, ABroadcastIsThatOfAllRanks) {
  for_each_root(Kind::broadcast, one_block, one_block);
}
TEST(NcclHops, AReductionToARootIsThatOfAllRanks) {
  for_each_root(Kind::reduce, one_block, one_block);
}
TEST(NcclHops, AGatherIsThatOfAllRanks) {
  for_each_root(Kind::gather, one_block, all_blocks);
}
TEST(NcclHops, AScatterIsThatOfAllRanks) {
  for_each_root(Kind::scatter, all_blocks, one_block);
}

TEST(NcclHops, AMeanOfFloat32HasNodesByWeight) {
  Operation operation;
  operation.options.op = ReduceOp::avg;
  operation.count = 1;
  float value = 0;
  operation.send = operation.receive = &value;
  const Hops hops = hops_of(operation, Group(2, 3).nodes_of(0), nullptr);
  EXPECT_EQ(hops.before.front().op, ReduceOp::sum);
  EXPECT_EQ(hops.between->options.op, ReduceOp::avg);
  EXPECT_EQ(hops.between->options.weight, 3.0);
}

TEST(NcclHops, HopsKeepWhatThePolicySays) {
  Operation operation;
  operation.count = kScatteredBytesMin;
  operation.options.delivery = best_effort(std::chrono::seconds(1));
  operation.options.codec.codec = Codec::nvfp4;
  std::vector<float> values(operation.count);
  operation.send = operation.receive = values.data();
  const Hops hops = hops_of(operation, Group(2, 2).nodes_of(1), nullptr);
  EXPECT_EQ(hops.between->options.delivery.kind, Delivery::Kind::best_effort);
  EXPECT_EQ(hops.between->options.codec.codec, Codec::nvfp4);
}

TEST(NcclHops, SomeOperationsHaveNone) {
  const Nodes nodes = Group(2, 2).nodes_of(0);
  Nodes dealt = nodes;
  dealt.ranks = {0, 2, 1, 3};
  Operation operation;
  EXPECT_TRUE(has_hops(operation, nodes));
  EXPECT_TRUE(has_hops(operation, dealt));
  operation.type = DataType::i32;
  EXPECT_TRUE(has_hops(operation, nodes));
  operation.options.op = ReduceOp::avg;
  EXPECT_FALSE(has_hops(operation, nodes)) << "each hop would truncate";
  for (const Kind kind : {Kind::reduce_scatter, Kind::all_gather, Kind::gather, Kind::scatter}) {
    operation = {};
    operation.kind = kind;
    EXPECT_TRUE(has_hops(operation, nodes));
    EXPECT_FALSE(has_hops(operation, dealt));
  }
  for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
    operation.kind = kind;
    EXPECT_TRUE(has_hops(operation, dealt));
  }
  operation.kind = Kind::all_to_all;
  EXPECT_FALSE(has_hops(operation, nodes));
}

}  // namespace
}  // namespace leeway::nccl
