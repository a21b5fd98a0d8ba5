#include "interop/nccl/policy.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/crc32c.h"
#include "interop/nccl/policy_parser.h"

namespace leeway::nccl {
namespace {

constexpr std::array<std::string_view, kKindCount> kNames = {
    "all_reduce", "reduce_scatter", "reduce",  "broadcast", "all_gather",
    "all_to_all", "gather",         "scatter", "send",      "recv"};
constexpr std::array<std::string_view, kKindCount> kTitles = {
    "AllReduce", "ReduceScatter", "Reduce",  "Broadcast", "AllGather",
    "AlltoAll",  "Gather",        "Scatter", "Send",      "Recv"};

bool may_be_lossy(Kind kind, ReduceOp op, DataType type, std::size_t bytes) {
  const bool sums = op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum;
  const bool floats = type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
  return reduces(kind) && sums && floats && bytes >= Policy::kLossyBytesMin;
}

}  // namespace

std::string_view name_of(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}
std::string_view title_of(Kind kind) {
  return kTitles[static_cast<std::size_t>(kind)];
}

Result<Policy> Policy::parse(std::string_view text) {
  return RuleParser(text).policy();
}

Result<Policy> Policy::read(const std::string& value) {
  if (value.empty() || value.find("->") != std::string::npos) return parse(value);
  std::ifstream file(value);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "LEEWAY_NCCL_POLICY=\"%.120s\" is neither a rule (it has no \"->\") nor a "
                         "file that can be read",
                         value.c_str());
  }
  return parse(text);
}

bool Policy::Rule::concerns(const Group& group) const {
  if (::fnmatch(name.c_str(), group.name.c_str(), 0) != 0) return false;
  if (size && *size != group.size) return false;
  if (world && group.world != group.size) return false;
  return !ordinal || *ordinal == group.ordinal;
}

std::string Policy::Rule::canonical() const {
  std::array<char, 128> head{};
  std::snprintf(head.data(), head.size(), "%x %x %llu %llu %d %d %a %lld %d ", kinds, types,
                static_cast<unsigned long long>(bytes_min),
                static_cast<unsigned long long>(bytes_max), by_nccl ? 1 : 0,
                static_cast<int>(outcome.delivery.kind), outcome.delivery.loss_max,
                static_cast<long long>(outcome.delivery.deadline.count()),
                static_cast<int>(outcome.estimator));
  return head.data() + to_string(outcome.codec) + "\n";
}

Policy Policy::of(const Group& group) const {
  Policy out;
  for (const Rule& rule : rules_) {
    if (rule.concerns(group)) out.rules_.push_back(rule);
  }
  return out;
}

const CollectiveOptions* Policy::find(Kind kind, ReduceOp op, DataType type,
                                      std::size_t bytes) const {
  if (rules_.empty() || !may_be_lossy(kind, op, type, bytes)) return nullptr;
  const Rule* const rule = first(kind, type, bytes);
  return rule != nullptr && !rule->by_nccl ? &rule->outcome : nullptr;
}

bool Policy::by_nccl(Kind kind, DataType type, std::size_t bytes) const {
  const Rule* const rule = first(kind, type, bytes);
  return rule != nullptr && rule->by_nccl;
}

bool Policy::says_nccl() const {
  return std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) { return rule.by_nccl; });
}

const Policy::Rule* Policy::first(Kind kind, DataType type, std::size_t bytes) const {
  for (const Rule& rule : rules_) {
    if ((rule.kinds >> static_cast<int>(kind) & 1) == 0) continue;
    if ((rule.types >> static_cast<int>(type) & 1) == 0) continue;
    if (bytes >= rule.bytes_min && bytes <= rule.bytes_max) return &rule;
  }
  return nullptr;
}

std::uint64_t Policy::fingerprint() const {
  std::string text;
  for (const Rule& rule : rules_) text += rule.canonical();
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(text)));
  return std::uint64_t{sum} << 32 | text.size();
}

}  // namespace leeway::nccl
