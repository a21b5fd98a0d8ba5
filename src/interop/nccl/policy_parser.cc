#include "interop/nccl/policy_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/read_number.h"
#include "base/short_names.h"

namespace leeway::nccl {
namespace {

constexpr std::string_view kSpace = " \t\r";

// Limit on the characters of a rule that a message shows.
constexpr std::size_t kTextMax = 80;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return text.substr(text.size());
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Returns the parts between separators, trimmed. Each is a view into the text, so errors can give
// its column.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = parts_of(text, kSpace);
  std::erase_if(words, [](std::string_view word) { return word.empty(); });
  return words;
}

// A number, and the unit behind it.
struct Quantity {
  double value = 0;
  std::string_view unit;
};
std::optional<Quantity> quantity_of(std::string_view text) {
  Quantity out;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (error != std::errc() || !(out.value >= 0)) return std::nullopt;
  out.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return out;
}

std::optional<double> scaled(std::string_view text,
                             std::initializer_list<std::pair<std::string_view, double>> units,
                             double most) {
  const auto quantity = quantity_of(text);
  if (!quantity) return std::nullopt;
  for (const auto& [name, factor] : units) {
    if (name == quantity->unit && quantity->value * factor <= most) return quantity->value * factor;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  const auto value = scaled(text,
                            {{"", 1},
                             {"B", 1},
                             {"KiB", 1024.0},
                             {"MiB", 1048576.0},
                             {"GiB", 1073741824.0},
                             {"kB", 1e3},
                             {"MB", 1e6},
                             {"GB", 1e9}},
                            1e18);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<Duration> duration_of(std::string_view text) {
  const auto value = scaled(text, {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}, 1e18);
  if (!value || *value < 1) return std::nullopt;
  return Duration(static_cast<std::int64_t>(*value));
}

template <typename Number>
std::optional<Number> whole_of(std::string_view text) {
  Number value{};
  return read_number(text, value) ? std::optional(value) : std::nullopt;
}

bool takes_all(std::string_view part) {
  return part.empty() || part == "*";
}

}  // namespace

Status RuleParser::wrong(std::string_view where, const char* what) const {
  const std::size_t at = static_cast<std::size_t>(where.data() - text_.data());
  const std::string_view before = text_.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return Status::error(
      StatusCode::kInvalidArgument, "LEEWAY_NCCL_POLICY, line %td, column %zu: \"%.*s\" %s",
      static_cast<std::ptrdiff_t>(line), at - begin + 1,
      static_cast<int>(std::min<std::size_t>(where.size(), 40)), where.data(), what);
}

Result<Policy> RuleParser::policy() {
  Policy policy;
  for (std::string_view line : parts_of(text_, "\n")) {
    line = trimmed(line.substr(0, line.find('#')));
    for (const std::string_view part : parts_of(line, ";")) {
      if (part.empty()) continue;
      Rule& next = policy.rules_.emplace_back();
      if (Status status = rule(part, next); !status.ok()) return status;
      next.text = part.substr(0, kTextMax);
    }
  }
  return policy;
}

Status RuleParser::rule(std::string_view line, Rule& rule) {
  constexpr std::string_view kArrow = "->";
  const std::size_t arrow = line.find(kArrow);
  if (arrow == std::string_view::npos)
    return wrong(line, "has no \"->\" with a delivery behind it");
  const auto parts = parts_of(line.substr(0, arrow), "|");
  if (parts.size() > 4)
    return wrong(parts[4],
                 "is a fifth part: a rule has operations | types | bytes | communicators");
  Status status = operations(parts[0], rule);
  if (status.ok() && parts.size() > 1) status = types(parts[1], rule);
  if (status.ok() && parts.size() > 2) status = bytes(parts[2], rule);
  if (status.ok() && parts.size() > 3) status = communicators(parts[3], rule);
  if (status.ok()) status = outcome(trimmed(line.substr(arrow + kArrow.size())), rule);
  return status;
}

Status RuleParser::operations(std::string_view part, Rule& rule) {
  if (takes_all(part)) return Status();
  rule.kinds = 0;
  for (const std::string_view word : words_of(part)) {
    int kind = 0;
    while (kind < kKindCount && name_of(static_cast<Kind>(kind)) != word) ++kind;
    if (kind == kKindCount) return wrong(word, "is no operation; all_reduce is one");
    rule.kinds |= 1U << kind;
  }
  return Status();
}

Status RuleParser::types(std::string_view part, Rule& rule) {
  if (takes_all(part)) return Status();
  rule.types = 0;
  for (const std::string_view word : words_of(part)) {
    const auto type = type_of_short_name(word);
    if (!type) return wrong(word, "is no type; f32, f16 and bf16 are");
    rule.types |= 1U << static_cast<int>(*type);
  }
  return Status();
}

Status RuleParser::bytes(std::string_view part, Rule& rule) {
  if (takes_all(part)) return Status();
  for (const std::string_view word : words_of(part)) {
    const std::size_t digits = std::min(word.find_first_of("0123456789."), word.size());
    const std::string_view relation = word.substr(0, digits);
    const auto value = bytes_of(word.substr(digits));
    if (!value) return wrong(word, "is no size; >=1MiB is one");
    if (relation == ">=") {
      rule.bytes_min = *value;
    } else if (relation == ">") {
      rule.bytes_min = *value + 1;
    } else if (relation == "<=") {
      rule.bytes_max = *value;
    } else if (relation == "<" && *value > 0) {
      rule.bytes_max = *value - 1;
    } else {
      return wrong(word, "is no bound of sizes; >=1MiB is one");
    }
  }
  return Status();
}

Status RuleParser::communicators(std::string_view part, Rule& rule) {
  if (takes_all(part)) return Status();
  for (const std::string_view word : parts_of(part, ",")) {
    if (Status status = communicator(word, rule); !status.ok()) return status;
  }
  return Status();
}

Status RuleParser::communicator(std::string_view word, Rule& rule) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view key = word.substr(0, equals);
  const std::string_view value =
      equals == word.size() ? word.substr(equals) : word.substr(equals + 1);
  if (key == "comm" && !value.empty()) {
    rule.name = std::string(value);
  } else if (key == "size" && value == "world") {
    rule.world = true;
  } else if (key == "size" && whole_of<int>(value).value_or(0) > 0) {
    rule.size = whole_of<int>(value);
  } else if (key == "ordinal" && whole_of<std::uint64_t>(value)) {
    rule.ordinal = whole_of<std::uint64_t>(value);
  } else {
    return wrong(word, "is neither comm=NAME, size=N, size=world nor ordinal=N");
  }
  return Status();
}

Status RuleParser::outcome(std::string_view part, Rule& rule) {
  const auto words = words_of(part);
  if (words.empty()) return wrong(part, "is no delivery; best_effort(200ms) is one");
  if (Status status = delivery(words[0], rule); !status.ok()) return status;
  if (words.size() > 3) return wrong(words[3], "is one word too many behind the arrow");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto codec = parse_codec(words[i]);
    const auto estimator = parse_estimator(words[i]);
    if (codec.ok()) {
      rule.outcome.codec = *codec;
    } else if (estimator.ok()) {
      rule.outcome.estimator = *estimator;
    } else {
      return wrong(words[i], "is neither a codec (`leeway codec list`) nor an estimator");
    }
  }
  return Status();
}

Status RuleParser::delivery(std::string_view word, Rule& rule) {
  if (word == "exact") {
    rule.outcome.delivery = exact(no_deadline);
    return Status();
  }
  const std::size_t open = std::min(word.find('('), word.size());
  const std::string_view name = word.substr(0, open);
  std::vector<std::string_view> arguments;
  if (open < word.size() && word.back() == ')')
    arguments = parts_of(word.substr(open + 1, word.size() - open - 2), ",");
  if (name == "best_effort" && arguments.size() == 1) {
    if (const auto deadline = duration_of(arguments[0])) {
      rule.outcome.delivery = best_effort(*deadline);
      return Status();
    }
  }
  if (name == "bounded" && arguments.size() == 2) {
    const auto loss = quantity_of(arguments[0]);
    const auto deadline = duration_of(arguments[1]);
    if (loss && loss->unit.empty() && loss->value <= 1 && deadline) {
      rule.outcome.delivery = bounded(loss->value, *deadline);
      return Status();
    }
  }
  return wrong(word, "is no delivery; exact, best_effort(200ms) and bounded(0.01,200ms) are");
}

}  // namespace leeway::nccl
