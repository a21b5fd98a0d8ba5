#include "interop/nccl/policy.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
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

constexpr std::uint32_t bit_of(DataType type) {
  return 1U << static_cast<int>(type);
}
constexpr std::uint32_t kLossyTypes =
    bit_of(DataType::f32) | bit_of(DataType::f16) | bit_of(DataType::bf16);

bool may_be_lossy(Kind kind, ReduceOp op, DataType type, std::size_t bytes) {
  const bool sums = op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum;
  return reduces(kind) && sums && (kLossyTypes & bit_of(type)) != 0 &&
         bytes >= Policy::kLossyBytesMin;
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
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(value, ignored)) file.open(value);  // a pipe would block
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
  std::snprintf(head.data(), head.size(), "%x %x %llu %llu %d %a %lld %d ", kinds, types,
                static_cast<unsigned long long>(bytes_min),
                static_cast<unsigned long long>(bytes_max), static_cast<int>(outcome.delivery.kind),
                outcome.delivery.loss_max,
                static_cast<long long>(outcome.delivery.deadline.count()),
                static_cast<int>(outcome.estimator));
  return head.data() + to_string(outcome.codec) + "\n";
}

Policy::Rule Policy::Rule::effective() const {
  Rule out = *this;
  if (outcome.delivery.kind == Delivery::Kind::exact) return out;
  out.kinds = 0;
  for (int kind = 0; kind < kKindCount; ++kind) {
    if (reduces(static_cast<Kind>(kind))) out.kinds |= kinds & 1U << kind;
  }
  out.types &= kLossyTypes;
  out.bytes_min = std::max<std::uint64_t>(bytes_min, kLossyBytesMin);
  return out;
}

bool Policy::Rule::covers(const Rule& other) const {
  return (other.kinds & ~kinds) == 0 && (other.types & ~types) == 0 &&
         bytes_min <= other.bytes_min && bytes_max >= other.bytes_max &&
         (name == "*" || name == other.name) && (!size || size == other.size) &&
         (!world || other.world) && (!ordinal || ordinal == other.ordinal);
}

std::vector<std::string> Policy::idle_rules() const {
  std::vector<std::string> idle;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule rule = rules_[i].effective();
    std::string why;
    if (rule.kinds == 0) {
      why = "only all_reduce, reduce_scatter and reduce may be lossy";
    } else if (rule.types == 0) {
      why = "only f32, f16 and bf16 may be lossy";
    } else if (rules_[i].bytes_min > rule.bytes_max) {
      why = "no size is within its bounds";
    } else if (rule.bytes_min > rule.bytes_max) {
      why = "less than 64 KiB stays exact in any case";
    } else {
      const auto before =
          std::find_if(rules_.begin(), rules_.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const Rule& one) { return one.covers(rule); });
      if (before != rules_.begin() + static_cast<std::ptrdiff_t>(i))
        why = "rule " + std::to_string(before - rules_.begin() + 1) + " takes all its calls";
    }
    if (why.empty()) continue;
    idle.push_back("rule " + std::to_string(i + 1) + ", \"" + rule.text +
                   "\", decides nothing: " + why);
  }
  return idle;
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
  for (const Rule& rule : rules_) {
    if ((rule.kinds >> static_cast<int>(kind) & 1) == 0) continue;
    if ((rule.types >> static_cast<int>(type) & 1) == 0) continue;
    if (bytes >= rule.bytes_min && bytes <= rule.bytes_max) return &rule.outcome;
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
