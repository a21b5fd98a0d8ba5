#include "train/compute_settings.h"

#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/read_number.h"

namespace leeway::tools::train {
namespace {

using ThresholdKind = ComputeThreshold::Kind;

constexpr double kThresholdSecondsMax = 3600;
constexpr int kMicroBatchesMax = 4096;

template <typename... Values>
Status refuse(const char* pattern, Values... values) {
  return Status::error(StatusCode::kInvalidArgument, pattern, values...);
}

Result<ComputeThreshold> parse_threshold(const std::string& text) {
  if (text == "none") return no_threshold;
  if (text == "auto") return auto_threshold;
  double seconds = 0;
  if (!read_number(text, seconds) || !(seconds > 0 && seconds <= kThresholdSecondsMax)) {
    return refuse("--compute-threshold '%s': there are none, auto, or seconds above 0 and up to %g",
                  text.c_str(), kThresholdSecondsMax);
  }
  return ComputeThreshold(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

template <typename Enum, std::size_t count>
Result<Enum> parse_name(const char* option, const std::string& text,
                        const std::array<Enum, count>& known, Enum unless_given) {
  if (text.empty()) return unless_given;
  std::string names;
  for (const Enum value : known) {
    if (text == to_string(value)) return value;
    names += std::string(names.empty() ? "" : ", ") + to_string(value);
  }
  return refuse("%s '%s': there are %s", option, text.c_str(), names.c_str());
}

Status check_threshold(const ComputeArguments& a, const ComputeSettings& settings) {
  if (settings.drops() && settings.micro_batches < 2) {
    return refuse(
        "--compute-threshold drops micro-batches; with --micro-batches 1 it would drop whole "
        "steps: take 2 or more");
  }
  if (settings.drops()) return Status();
  for (const auto& [option, text] : {std::pair("--compensation", &a.compensation),
                                     std::pair("--normalisation", &a.normalisation)}) {
    if (!text->empty()) return refuse("%s is about dropped work: add --compute-threshold", option);
  }
  return Status();
}

Status check_micro_batches(const ComputeSettings& settings, int batch, int ranks) {
  if (settings.micro_batches < 1 || settings.micro_batches > kMicroBatchesMax) {
    return refuse("--micro-batches %d is not within 1 .. %d", settings.micro_batches,
                  kMicroBatchesMax);
  }
  if (batch % settings.micro_batches != 0) {
    return refuse("--batch %d cannot be cut into --micro-batches %d of one size", batch,
                  settings.micro_batches);
  }
  const auto& slow = settings.straggler.slow;
  if (slow && ranks > 0 && slow->rank >= ranks)
    return refuse("--straggler: slow rank %d is not among ranks 0 .. %d", slow->rank, ranks - 1);
  return Status();
}

}  // namespace

const char* to_string(DropCompensation compensation) {
  switch (compensation) {
    case DropCompensation::none:
      return "none";
    case DropCompensation::extra_steps:
      return "extra_steps";
    case DropCompensation::requeue:
      return "requeue";
  }
  return "?";
}

const char* to_string(Normalisation normalisation) {
  return normalisation == Normalisation::realised_weight ? "realised" : "maximum";
}

std::string to_string(const ComputeThreshold& threshold) {
  if (threshold.kind == ThresholdKind::none) return "none";
  if (threshold.kind == ThresholdKind::automatic) return "auto";
  std::array<char, 32> text{};
  const double seconds = std::chrono::duration<double>(threshold.value).count();
  return {text.data(), std::to_chars(text.begin(), text.end(), seconds).ptr};
}

Result<ComputeSettings> understand_compute(const ComputeArguments& a, int batch, int ranks) {
  const auto straggler = parse_straggler(a.straggler);
  if (!straggler.ok()) return straggler.status();
  const auto threshold = parse_threshold(a.threshold);
  if (!threshold.ok()) return threshold.status();
  const auto compensation = parse_name(
      "--compensation", a.compensation,
      std::array{DropCompensation::none, DropCompensation::extra_steps, DropCompensation::requeue},
      DropCompensation::extra_steps);
  if (!compensation.ok()) return compensation.status();
  const auto normalisation =
      parse_name("--normalisation", a.normalisation,
                 std::array{Normalisation::realised_weight, Normalisation::fixed_maximum},
                 Normalisation::realised_weight);
  if (!normalisation.ok()) return normalisation.status();

  ComputeSettings settings;
  settings.straggler = *straggler;
  settings.threshold = *threshold;
  settings.compensation = *compensation;
  settings.normalisation = *normalisation;
  settings.baseline = a.baseline && settings.drops();
  const bool uneven = settings.drops() || straggler->kind != StragglerModel::Kind::none;
  settings.micro_batches = a.micro_batches != 0 ? a.micro_batches
                           : uneven             ? kMicroBatchesDefault
                                                : 1;
  if (const Status status = check_threshold(a, settings); !status.ok()) return status;
  if (const Status status = check_micro_batches(settings, batch, ranks); !status.ok())
    return status;
  return settings;
}

}  // namespace leeway::tools::train
