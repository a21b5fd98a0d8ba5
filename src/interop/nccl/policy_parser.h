// Parser for the rules of a policy (policy.h). Its errors say where a rule is wrong.
#pragma once

#include <string>
#include <string_view>

#include "interop/nccl/policy.h"

namespace leeway::nccl {

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}
  Result<Policy> policy();

 private:
  using Rule = Policy::Rule;

  Status rule(std::string_view line, Rule& rule);
  Status operations(std::string_view part, Rule& rule);
  Status types(std::string_view part, Rule& rule);
  Status bytes(std::string_view part, Rule& rule);
  Status communicators(std::string_view part, Rule& rule);
  Status communicator(std::string_view word, Rule& rule);
  Status outcome(std::string_view part, Rule& rule);
  Status delivery(std::string_view word, Rule& rule);

  // Returns the error, with line and column of `where`, which must be a view into the text.
  Status wrong(std::string_view where, const char* what) const;

  const std::string_view text_;
};

}  // namespace leeway::nccl
