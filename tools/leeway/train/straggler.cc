#include "train/straggler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/philox.h"
#include "base/read_number.h"

namespace leeway::tools::train {
namespace {

using StragglerKind = StragglerModel::Kind;

constexpr double kSigmaMax = 3;  // beyond this, one micro-batch in a thousand takes 10,000 medians
constexpr double kFactorMax = 100;
constexpr int kLevels = 999;  // levels of the paper's noise
// Makes delays independent of packet losses and rounding, which use the same seed.
constexpr std::uint64_t kSeedOfDelays = 0x73747261676c6572ULL;

struct NamedKind {
  std::string_view name;
  StragglerKind kind;
  double shape_max;  // 0 for kinds without a shape
};
constexpr std::array<NamedKind, 3> kNamedKinds{{{"constant", StragglerKind::constant, 0},
                                                {"lognormal", StragglerKind::lognormal, kSigmaMax},
                                                {"paper", StragglerKind::paper, kFactorMax}}};

Status refuse(std::string_view text) {
  return Status::error(StatusCode::kInvalidArgument,
                       "--straggler '%.*s': there are none, constant:MS, lognormal:MEDIAN_MS"
                       "[:SIGMA up to %g], paper:MS[:FACTOR up to %g], each with ,slow:RANK:FACTOR",
                       static_cast<int>(text.size()), text.data(), kSigmaMax, kFactorMax);
}

// Removes the part before the first `separator` from `text`, with the separator, and returns it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return head;
}

template <typename T>
std::optional<T> number(std::string_view text, T max) {
  T value{};
  if (!read_number(text, value) || !(value >= T{0} && value <= max)) return std::nullopt;
  return value;
}

std::optional<StragglerModel> parse_model(std::string_view text) {
  if (text == "none") return StragglerModel{};
  const std::string_view name = cut(text, ':');
  const auto known = std::ranges::find(kNamedKinds, name, &NamedKind::name);
  if (known == kNamedKinds.end()) return std::nullopt;
  StragglerModel model{.kind = known->kind, .ms = 0, .shape = 1, .slow = {}};
  const auto ms = number(cut(text, ':'), Straggler::kDelayMsMax);
  if (!ms) return std::nullopt;
  model.ms = *ms;
  if (text.empty()) return model;
  const auto shape = number(text, known->shape_max);
  if (!shape || known->shape_max == 0) return std::nullopt;
  model.shape = *shape;
  return model;
}

std::optional<SlowRank> parse_slow(std::string_view text) {
  if (cut(text, ':') != "slow") return std::nullopt;
  const auto rank = number(cut(text, ':'), static_cast<int>(kNoRank) - 1);
  const auto factor = number(text, kFactorMax);
  if (!rank || !factor) return std::nullopt;
  return SlowRank{*rank, *factor};
}

// Appends the separator and the shortest text that is parsed as `value` again.
template <typename T>
void append(std::string& text, char separator, T value) {
  std::array<char, 32> digits{};
  char* const end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  text += separator;
  text.append(digits.data(), end);
}

// Returns a normally distributed number, made from two uniform ones with 53 bits each (Box-Muller).
// The radius is never 0, so its logarithm is finite.
double normal(const PhiloxCounter& words) {
  const double radius = to_unit(words[0] | std::uint64_t{words[1]} << 32) + 0x1p-54;
  const double angle = to_unit(words[2] | std::uint64_t{words[3]} << 32);
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * M_PI * angle);
}

}  // namespace

Result<StragglerModel> parse_straggler(std::string_view text) {
  std::string_view rest = text;
  auto model = parse_model(cut(rest, ','));
  if (!model) return refuse(text);
  if (rest.empty()) return *model;
  model->slow = parse_slow(rest);
  if (!model->slow || model->kind == StragglerKind::none) return refuse(text);
  return *model;
}

std::string to_string(const StragglerModel& model) {
  const auto known = std::ranges::find(kNamedKinds, model.kind, &NamedKind::kind);
  if (known == kNamedKinds.end()) return "none";
  std::string text(known->name);
  append(text, ':', model.ms);
  if (known->shape_max > 0) append(text, ':', model.shape);
  if (!model.slow) return text;
  text += ",slow";
  append(text, ':', model.slow->rank);
  append(text, ':', model.slow->factor);
  return text;
}

Straggler::Straggler(const StragglerModel& model, std::uint64_t seed, int rank)
    : model_(model), seed_(seed ^ kSeedOfDelays), rank_(static_cast<std::uint32_t>(rank)) {
  if (model.slow && model.slow->rank == rank) factor_ = model.slow->factor;
  if (model.kind != StragglerKind::paper) return;
  double total = 0;
  double weighted = 0;
  for (int level = 1; level <= kLevels; ++level) {
    const double z = std::log(level) - 4.0;
    const double weight = std::exp(-0.5 * z * z) / level;
    weighted += weight * level;
    levels_.push_back(total += weight);
  }
  for (double& share : levels_) share /= total;
  level_mean_ = weighted / total;
}

double Straggler::draw(std::uint64_t step, std::size_t micro_batch) const {
  if (model_.kind == StragglerKind::constant) return 1.0;
  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), rank_,
              static_cast<std::uint32_t>(micro_batch)},
             philox_key(seed_));
  if (model_.kind == StragglerKind::lognormal) return std::exp(model_.shape * normal(words));
  const double share = to_unit(words[0] | std::uint64_t{words[1]} << 32);
  const auto level = std::upper_bound(levels_.begin(), levels_.end() - 1, share);
  return 1.0 + 0.5 * model_.shape * static_cast<double>(level - levels_.begin() + 1) / level_mean_;
}

Duration Straggler::delay(std::uint64_t step, std::size_t micro_batch) const {
  if (model_.kind == StragglerKind::none) return Duration(0);
  const double ms = std::min(kDelayMsMax, model_.ms * factor_ * draw(step, micro_batch));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

}  // namespace leeway::tools::train
