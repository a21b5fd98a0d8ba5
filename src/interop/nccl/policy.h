// Rules that an operator writes to say which calls may be lossy: one a line, or separated by ';'.
// The first rule that matches a call decides. If none does, the call is exact.
//
//   operations | types | bytes | communicators -> delivery, codec, estimator
//   all_reduce reduce_scatter | f32 bf16 | >=1MiB | comm=dp*,size=world -> best_effort(200ms) nvfp4
//
// '*' in place of a part, or nothing, matches all. In any case these stay exact: integers, FP8,
// f64, reductions other than sum, avg and premul_sum, operations that only move data, and tensors
// of less than 64 KiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/nccl/operation.h"
#include "leeway/status.h"

namespace leeway::nccl {

class Policy {
 public:
  // Tensors of fewer bytes stay exact, because lossy calls of that size are no faster.
  static constexpr std::size_t kLossyBytesMin = 65'536;

  // A communicator as rules see it.
  struct Group {
    std::string name;  // commName
    int size = 0;
    int world = 0;              // size of the process's first communicator
    std::uint64_t ordinal = 0;  // number of communicators that the process made before
  };

  // Returns kInvalidArgument, with line and column, if a rule is wrong.
  static Result<Policy> parse(std::string_view text);
  // Parses the value of LEEWAY_NCCL_POLICY: rules if it is empty or has "->", else the name of a
  // file of rules.
  static Result<Policy> read(const std::string& value);

  // Returns the rules that concern this communicator.
  Policy of(const Group& group) const;
  bool empty() const { return rules_.empty(); }

  // Returns how this call is delivered, or null if no rule decides: the call is then exact. `bytes`
  // is the size of the whole tensor.
  const CollectiveOptions* find(Kind kind, ReduceOp op, DataType type, std::size_t bytes) const;

  // Returns a text for each rule that can never decide a call: which rule, and why.
  std::vector<std::string> idle_rules() const;

  // Returns a checksum of the fields that affect how calls are made. Ranks compare it to find out
  // whether their policies differ.
  std::uint64_t fingerprint() const;

 private:
  struct Rule {
    std::uint32_t kinds = ~0U;  // bits by Kind
    std::uint32_t types = ~0U;  // bits by DataType
    std::uint64_t bytes_min = 0;
    std::uint64_t bytes_max = ~0ULL;
    std::string name = "*";  // a glob
    std::optional<int> size;
    bool world = false;
    std::optional<std::uint64_t> ordinal;
    CollectiveOptions outcome;
    std::string text;  // the rule as it was written, for messages

    bool concerns(const Group& group) const;
    // Returns the rule restricted to calls that may be lossy at all; an exact rule is returned as
    // it is.
    Rule effective() const;
    // Returns true if this rule matches all calls that `other` matches.
    bool covers(const Rule& other) const;
    // Returns the fields that affect how calls are made, as text for fingerprint().
    std::string canonical() const;
  };
  friend class RuleParser;

  std::vector<Rule> rules_;
};

}  // namespace leeway::nccl
