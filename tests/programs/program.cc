#include "programs/program.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace leeway::programs {

std::string_view to_string(Route route) {
  constexpr std::string_view kNames[] = {"auto",   "near",  "shm",   "mixed",  "udp",
                                         "inproc", "sites", "lanes", "sealed", "faulted"};
  return kNames[static_cast<std::size_t>(route)];
}

std::string_view to_string(Kind kind) {
  constexpr std::string_view kNames[] = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",   "gather",
      "scatter",    "all_to_all",     "barrier",    "message",   "exchange", "wrong",
      "mismatch",   "split",          "create",     "shrink",    "allocate", "destroy",
      "abort",      "sync",           "fork",       "leave",     "pause"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Difference difference) {
  constexpr std::array<std::string_view, kDifferences> kNames = {
      "count",     "size",   "nothing", "type",        "op",      "kind", "delivery",
      "estimator", "spread", "codec",   "confirm_use", "refused", "block"};
  return kNames[static_cast<std::size_t>(difference)];
}

std::vector<std::size_t> order_of_messages(const Step& step, int rank) {
  std::vector<std::size_t> order(step.messages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (step.crossed && rank % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

Step differing(const Step& step, bool among) {
  Step own = step;
  // With Difference::nothing, one rank has no elements. Operations detect that in different ways,
  // so all kinds are drawn.
  own.kind = step.difference == Difference::nothing ? static_cast<Kind>(step.salt / 4 % 8)
                                                    : Kind::all_reduce;
  own.type = DataType::f32;
  own.op = ReduceOp::sum;
  own.in_place = false;
  const bool lossy = step.difference == Difference::estimator ||
                     step.difference == Difference::spread ||
                     step.difference == Difference::confirm_use;
  if (lossy) own.delivery = Delivery::Kind::best_effort;
  if (step.difference == Difference::block) own.kind = Kind::all_to_all, own.uneven = true;
  if (!among) return own;
  constexpr std::array kKinds = {Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                                 Kind::barrier};
  constexpr std::array kTypes = {DataType::i32, DataType::f16, DataType::f64, DataType::u8};
  const std::size_t choice = step.salt % 4;
  switch (step.difference) {
    case Difference::count:
      ++own.count;
      break;
    case Difference::size:
      own.count = step.count < 5'000 ? 600'000 : 300;
      break;
    case Difference::nothing:
      own.count = 0;
      break;
    case Difference::type:
      own.type = kTypes[choice];
      break;
    case Difference::op:
      own.op = choice % 2 == 0 ? ReduceOp::max : ReduceOp::avg;
      break;
    case Difference::kind:
      own.kind = kKinds[choice];
      break;
    case Difference::delivery:
      own.delivery = choice % 2 == 0 ? Delivery::Kind::best_effort : Delivery::Kind::bounded;
      break;
    case Difference::estimator:
      own.estimator =
          own.estimator == Estimator::zero_fill ? Estimator::stratified : Estimator::zero_fill;
      break;
    case Difference::spread:
      own.spread = Delivery::Kind::best_effort;
      break;
    case Difference::codec:
      own.codec = choice % 2 == 0 ? Codec::bf16 : Codec::fp8_e4m3_block;
      break;
    case Difference::confirm_use:
      own.confirm_use = true;
      break;
    case Difference::refused:
      own.op = ReduceOp::band;
      break;
    case Difference::block:
      own.longer = true;
      break;
  }
  return own;
}

bool may_be_done_first(const Step& step, int rank) {
  const Step call = differing(step, false);
  if (step.difference == Difference::block)
    return std::countr_zero(step.who) != rank && longer_to(std::countr_zero(step.who)) != rank;
  switch (call.kind) {
    case Kind::broadcast:
    case Kind::scatter:
      return (step.who >> call.root & 1) == 0;
    case Kind::reduce:
    case Kind::gather:
      return rank != call.root;
    default:
      return false;
  }
}

std::string_view to_string(Front front) {
  constexpr std::string_view kNames[] = {"c++", "c", "nccl"};
  return kNames[static_cast<std::size_t>(front)];
}

Groups::Groups(const Program& program) {
  const auto put = [this](int comm, std::vector<int> members) {
    if (static_cast<int>(members_.size()) <= comm)
      members_.resize(static_cast<std::size_t>(comm) + 1);
    members_[static_cast<std::size_t>(comm)] = std::move(members);
  };
  std::vector<int> all;
  for (int rank = 0; rank < program.ranks; ++rank) all.push_back(rank);
  put(0, all);
  for (const Step& step : program.steps) {
    const std::vector<int> parents = of(step.comm);
    if (step.kind == Kind::create) put(step.made, all);
    if (step.kind == Kind::shrink) {
      std::vector<int> left;
      for (std::size_t i = 0; i < parents.size(); ++i)
        if ((step.who >> i & 1) == 0) left.push_back(parents[i]);
      put(step.made, left);
    }
    if (step.kind != Kind::split || step.colors.size() != parents.size()) continue;
    std::vector<std::size_t> order(parents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return step.keys[a] < step.keys[b]; });
    const int colors = 1 + *std::max_element(step.colors.begin(), step.colors.end());
    for (int color = 0; color < colors; ++color) {
      std::vector<int> members;
      for (const std::size_t i : order)
        if (step.colors[i] == color) members.push_back(parents[i]);
      put(step.made + color, members);
    }
  }
}

const std::vector<int>& Groups::of(int comm) const {
  static const std::vector<int> none;
  const auto at = static_cast<std::size_t>(comm);
  return at < members_.size() ? members_[at] : none;
}

int Groups::made(const Step& step, int rank, int size) {
  const auto at = static_cast<std::size_t>(rank);
  switch (step.kind) {
    case Kind::create:
      return step.made;
    case Kind::shrink:
      return (step.who >> rank & 1) != 0 ? -1 : step.made;
    case Kind::split:
      if (step.colors.size() != static_cast<std::size_t>(size) || step.colors[at] < 0) return -1;
      return step.made + step.colors[at];
    default:
      return -1;
  }
}

Program joined(const std::vector<Program>& programs) {
  Program all = programs.front();
  all.steps.clear();
  int comms = 0;
  for (const Program& one : programs) {
    const int steps = static_cast<int>(all.steps.size());
    for (Step step : one.steps) {
      if (step.comm > 0) step.comm += comms;
      if (step.made > 0) step.made += comms;
      if (step.allocation >= 0) step.allocation += steps;
      all.steps.push_back(std::move(step));
    }
    comms += Groups(one).count();
    all.seed = one.seed;
  }
  return all;
}

}  // namespace leeway::programs
