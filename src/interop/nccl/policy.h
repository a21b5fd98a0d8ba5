// What may be lossy: rules that an operator writes, one a line or separated by ';'. The first rule
// that matches a call decides; where none does, the call is exact.
//
//   all_reduce reduce_scatter | f32 bf16 | >=1MiB | comm=dp*,size=world -> best_effort(200ms) nvfp4
//   operations                | types    | bytes  | communicators       -> delivery, codec,
//   estimator
//
// '*' in place of a part, or nothing, matches all. Integers, FP8, f64, reductions other than sum,
// avg and premul_sum, whatever only moves data, and less than 64 KiB stay exact in any case.
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
  // Less stays exact: there is nothing to win.
  static constexpr std::size_t kLossyBytesMin = 65'536;

  // A communicator as rules see it.
  struct Group {
    std::string name;  // commName
    int size = 0;
    int world = 0;              // size of the process's first communicator
    std::uint64_t ordinal = 0;  // of the communicators that this process made
  };

  // kInvalidArgument naming line and column.
  static Result<Policy> parse(std::string_view text);
  // The same of a variable's value: rules where it has "->", else the name of a file of rules.
  static Result<Policy> read(const std::string& value);

  // The rules that concern this communicator.
  Policy of(const Group& group) const;
  bool empty() const { return rules_.empty(); }

  // How this call is delivered, or null: exactly. `bytes`: of the whole tensor.
  const CollectiveOptions* find(Kind kind, ReduceOp op, DataType type, std::size_t bytes) const;

  // Texts about the rules that can never decide a call: which rule, and why.
  std::vector<std::string> idle_rules() const;

  // Equal on ranks that treat all calls alike.
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
    std::string text;  // as it was written, for texts

    bool concerns(const Group& group) const;
    // Without the calls that stay exact in any case.
    Rule effective() const;
    // All calls of `other` are this rule's.
    bool covers(const Rule& other) const;
    // The part that a call sees, for the fingerprint.
    std::string canonical() const;
  };
  friend class RuleParser;

  std::vector<Rule> rules_;
};

}  // namespace leeway::nccl
