#include "rendezvous/variable_names.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/environment.h"
#include "rendezvous/environment.h"
#include "rendezvous/log.h"

namespace leeway::rendezvous {
namespace {

constexpr std::string_view kPrefix = "LEEWAY_";

// A misspelt name has at most kTyposMax typos, and at most one for each kLettersPerTypo letters:
// LEEWAY_LOSS is not LEEWAY_LOG.
constexpr std::size_t kTyposMax = 2;
constexpr std::size_t kLettersPerTypo = 3;

// Longer names are never compared, because a comparison takes time and no known name is nearly so
// long.
constexpr std::size_t kNameMax = 64;

constexpr std::array<const char*, 8> kReadElsewhere = {
    "LEEWAY_NCCL_POLICY",  "LEEWAY_NCCL_TRACE", "LEEWAY_NCCL_TIMEOUT", "LEEWAY_NCCL_SEAL",
    "LEEWAY_NCCL_STAGING", "LEEWAY_NCCL_SMS",   "LEEWAY_COMMAND",      "LEEWAY_NCCL_VERSION"};

// Beginnings of variables of the project's own tools, tests and builds. They draw no warning, and
// are never suggested for a misspelt name.
constexpr std::array<std::string_view, 10> kOwn = {
    "LEEWAY_LAUNCHER_PID", "LEEWAY_SLOW_TESTS", "LEEWAY_DEBIAN_MIRROR", "LEEWAY_FRESH_ROOT_",
    "LEEWAY_TEST_",        "LEEWAY_VM_",        "LEEWAY_BUILD_",        "LEEWAY_WITH_",
    "LEEWAY_UNITY",        "LEEWAY_NCCL_TESTS"};

std::vector<const char*> meaningful_names() {
  std::vector<const char*> names;
  for (const EnvironmentVariable& variable : environment_variables())
    names.push_back(variable.name);
  names.insert(names.end(), kReadElsewhere.begin(), kReadElsewhere.end());
  return names;
}

bool protects(const char* name) {
  return std::ranges::find(kProtectingVariables, std::string_view(name)) !=
         kProtectingVariables.end();
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// Returns the edit distance of two names: characters to add, drop, change or swap with a neighbour.
std::size_t typos_between(std::string_view one, std::string_view other) {
  using Row = std::array<std::size_t, kNameMax + 1>;  // for the first i characters of `one`
  Row before_last{};
  Row last{};
  Row row{};
  for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t change = one[i - 1] == other[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[other.size()];
}

bool is_slip(std::string_view name, std::string_view meant) {
  const std::size_t letters = meant.size() - kPrefix.size();
  return typos_between(name, meant) <= std::min(kTyposMax, letters / kLettersPerTypo);
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  name.remove_prefix(std::min(kPrefix.size(), name.size()));
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('_'), name.size());
    if (end > 0) words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

// Returns true if the word is `meant`, or has one typo. Short words must be equal, since many of
// them differ by one letter.
bool is_word(std::string_view word, std::string_view meant) {
  constexpr std::size_t kLongWord = 5;
  return word == meant || (meant.size() >= kLongWord && typos_between(word, meant) == 1);
}

// Returns true if one of `words`, such as SECRET in LEEWAY_SECRET_KEY_PATH, is in `meant`,
// which is one of kProtectingVariables.
bool names_protection(const std::vector<std::string_view>& words, const char* meant) {
  const std::vector<std::string_view> theirs = words_of(meant);
  return std::ranges::any_of(words, [&](std::string_view word) {
    return word != "FILE" && word != "REQUIRE" &&
           std::ranges::any_of(theirs, [&](std::string_view one) { return is_word(word, one); });
  });
}

// Returns the variable that `name` probably means, or null. It is the first that exists of these:
//   1. a variable at most one typo away
//   2. one of kProtectingVariables that shares a word with `name` (is_word())
//   3. a variable two typos away, if is_slip()
// 2 precedes 3 because strangers could join the group if such a misspelt variable went unnoticed.
const char* nearest_to(const std::string& name) {
  const auto typos_in = [&](const char* meant) { return typos_between(name, meant); };
  const std::vector<const char*> all = meaningful_names();
  const char* const nearest = *std::ranges::min_element(all, {}, typos_in);
  if (typos_in(nearest) <= 1) return nearest;
  std::vector<const char*> protecting;
  std::ranges::copy_if(
      kProtectingVariables, std::back_inserter(protecting),
      [words = words_of(name)](const char* meant) { return names_protection(words, meant); });
  if (!protecting.empty()) return *std::ranges::min_element(protecting, {}, typos_in);
  return is_slip(name, nearest) ? nearest : nullptr;
}

bool is_set(const char* const* environment, std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.size() > name.size() + 1 && entry[name.size()] == '=' && entry.starts_with(name))
      return true;
  }
  return false;
}

// Returns the variable if it is odd. A name that begins with LEEWAY_ is odd if nobody reads it. A
// name whose prefix has a typo is odd only if the whole name looks like a misspelt known one.
std::optional<OddVariable> judge(std::string_view name) {
  if (name.size() > kNameMax || name.size() < kPrefix.size()) return std::nullopt;
  const std::string folded = upper(name);
  if (typos_between(std::string_view(folded).substr(0, kPrefix.size()), kPrefix) > kTyposMax)
    return std::nullopt;
  const auto same = [&](const char* known) { return name == known; };
  if (std::ranges::any_of(meaningful_names(), same)) return std::nullopt;
  if (std::ranges::any_of(kOwn, [&](std::string_view own) { return name.starts_with(own); }))
    return std::nullopt;
  const bool ours = folded.starts_with(kPrefix);
  OddVariable odd{std::string(name), nearest_to(folded), false};
  const bool near = odd.meant != nullptr && is_slip(folded, odd.meant);
  return ours || near ? std::optional(odd) : std::nullopt;
}

}  // namespace

std::span<const char* const> names_read_elsewhere() {
  return kReadElsewhere;
}

std::string OddVariable::text() const {
  std::string out = name + " is no variable of Leeway, and nobody reads it";
  if (meant == nullptr) return out + "; `leeway doctor` lists those that are";
  return out + "; is " + meant + " meant?";
}

std::vector<OddVariable> odd_variables(const char* const* environment) {
  const bool is_sealed =
      is_set(environment, "LEEWAY_SECRET_FILE") || is_set(environment, "LEEWAY_TLS_CERT");
  std::vector<OddVariable> odd;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    auto one = judge(text.substr(0, text.find('=')));
    if (!one) continue;
    one->leaves_open = one->meant != nullptr && protects(one->meant) && !is_sealed;
    odd.push_back(std::move(*one));
  }
  return odd;
}

Status check_names(const std::vector<OddVariable>& odd) {
  const auto open = std::ranges::find_if(odd, &OddVariable::leaves_open);
  if (open == odd.end()) return Status();
  return Status::error(StatusCode::kInvalidArgument,
                       "%.64s is no variable of Leeway, and nobody reads it; if %s is meant, the "
                       "group would go without that protection: correct the name, or unset it",
                       open->name.c_str(), open->meant);
}

Status check_process_names() {
  const std::vector<OddVariable> odd = odd_variables(environment());
  static std::atomic<bool> told{false};
  if (!odd.empty() && !told.exchange(true)) {
    Log log(log_level(process_environment()), kNoRank);
    for (const OddVariable& one : odd)
      log.print(LogLevel::warn, "odd variable", "environment: %s", one.text().c_str());
  }
  return check_names(odd);
}

}  // namespace leeway::rendezvous
