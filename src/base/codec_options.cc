// The text form of a codec and its settings, and what settings are allowed.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/read_number.h"
#include "leeway/codec.h"

namespace leeway {
inline namespace v0 {
namespace {

using std::string_view;

constexpr int kDrawsMax = 4;

bool chooses_rounding(Codec codec) {
  return codec != Codec::native && codec != Codec::fp32 && codec != Codec::luq &&
         codec != Codec::sparse;
}
bool has_power_of_two_blocks(Codec codec) {
  return codec >= Codec::mxfp8_e4m3 && codec <= Codec::mxfp4;
}
bool has_packet_scale(Codec codec) {
  return codec == Codec::fp8_e4m3 || codec == Codec::fp8_e5m2 || codec == Codec::nvfp4 ||
         codec == Codec::nvfp4_te || codec == Codec::luq || codec == Codec::int8;
}
bool is_group(std::uint16_t group) {
  return std::has_single_bit(group) && group >= 2 && (group <= 32 || group == 256);
}

Status refuse(const CodecOptions& options, const char* what) {
  return Status::error(StatusCode::kInvalidArgument, "codec %s: %s",
                       to_string(options.codec).data(), what);
}

bool read_sparsity(string_view text, CodecOptions& options) {
  const std::size_t slash = text.find('/');
  return slash != string_view::npos && read_number(text.substr(0, slash), options.kept) &&
         read_number(text.substr(slash + 1), options.group);
}

// Applies one setting, the text between two colons. Returns false if there is no such setting.
bool apply(string_view setting, CodecOptions& options) {
  constexpr string_view kDraws = "draws=";
  constexpr string_view kBound = "bound=";
  for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
    if (setting == to_string(rounding)) return options.rounding = rounding, true;
  }
  for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::even, ScaleRule::ceil}) {
    if (setting == to_string(rule)) return options.scale_rule = rule, true;
  }
  if (setting == "rotate") return options.rotate = true;
  if (setting == "clip") return options.clip = true;
  if (setting.starts_with(kDraws)) return read_number(setting.substr(kDraws.size()), options.draws);
  if (setting.starts_with(kBound)) return read_number(setting.substr(kBound.size()), options.bound);
  return options.codec == Codec::sparse && read_sparsity(setting, options);
}

std::string shortest(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

}  // namespace

Status validate(const CodecOptions& options) {
  const CodecOptions defaults;
  const Codec codec = options.codec;
  if (options.rounding != Rounding::automatic && !chooses_rounding(codec))
    return refuse(options, "has no choice of rounding");
  if (options.scale_rule != ScaleRule::automatic && !has_power_of_two_blocks(codec)) {
    return refuse(options, "a scale rule belongs to the MX formats");
  }
  if (options.scale_rule != ScaleRule::automatic && options.scale_rule != ScaleRule::ceil &&
      options.rounding == Rounding::stochastic) {
    return refuse(options,
                  "stochastic rounding takes scale rule ceil; the others clip, which biases");
  }
  if (options.rotate && (codec == Codec::native || codec == Codec::automatic)) {
    return refuse(options, "cannot be rotated; fp32 can");
  }
  if (options.clip && codec != Codec::int8) return refuse(options, "clip belongs to int8");
  if (options.draws != defaults.draws && codec != Codec::luq)
    return refuse(options, "draws belong to luq");
  if (options.draws < 1 || options.draws > kDrawsMax)
    return refuse(options, "draws must lie in 1 .. 4");
  const bool sparse = codec == Codec::sparse;
  if (!sparse && (options.kept != defaults.kept || options.group != defaults.group)) {
    return refuse(options, "kept and group belong to sparse");
  }
  if (!is_group(options.group)) return refuse(options, "group must be 2, 4, 8, 16, 32 or 256");
  if (options.kept < 1 || options.kept >= options.group)
    return refuse(options, "kept must lie in 1 .. group - 1");
  if (!(options.bound >= 0.0f) || !std::isfinite(options.bound))
    return refuse(options, "bound must be finite and >= 0");
  if (options.bound > 0.0f && !has_packet_scale(codec))
    return refuse(options, "has no packet scale that a bound could set");
  return Status();
}

std::string to_string(const CodecOptions& options) {
  const CodecOptions defaults;
  std::string text(to_string(options.codec));
  const auto add = [&text](string_view setting) { text.append(":").append(setting); };
  if (options.codec == Codec::sparse)
    add(std::to_string(options.kept) + "/" + std::to_string(options.group));
  if (options.rounding != Rounding::automatic) add(to_string(options.rounding));
  if (options.scale_rule != ScaleRule::automatic) add(to_string(options.scale_rule));
  if (options.rotate) add("rotate");
  if (options.clip) add("clip");
  if (options.draws != defaults.draws) add("draws=" + std::to_string(options.draws));
  if (options.bound != 0.0f) add("bound=" + shortest(options.bound));
  return text;
}

Result<CodecOptions> parse_codec(string_view text) {
  const std::size_t colon = text.find(':');
  const auto codec = parse_codec_name(text.substr(0, colon));
  if (!codec.ok()) return codec.status();
  CodecOptions options(*codec);
  for (std::size_t at = colon; at != string_view::npos;) {
    const std::size_t next = text.find(':', at + 1);
    const string_view setting =
        text.substr(at + 1, next == string_view::npos ? next : next - at - 1);
    if (!apply(setting, options)) {
      return Status::error(StatusCode::kInvalidArgument,
                           "codec \"%.*s\": unknown setting \"%.*s\"; there are nearest, "
                           "stochastic, floor, even, ceil, rotate, clip, "
                           "draws=N, bound=X, and KEPT/GROUP of sparse",
                           static_cast<int>(std::min<std::size_t>(text.size(), 40)), text.data(),
                           static_cast<int>(std::min<std::size_t>(setting.size(), 40)),
                           setting.data());
    }
    at = next;
  }
  if (Status status = validate(options); !status.ok()) return status;
  return options;
}

}  // namespace v0
}  // namespace leeway
