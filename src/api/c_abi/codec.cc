// C functions for codec options, as structs and as text.
#include "leeway/c/codec.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

namespace leeway::c_abi {
namespace {

constexpr leeway_codec_options kCodecDefaults = LEEWAY_CODEC_OPTIONS_INIT;
static_assert(LEEWAY_CODEC_AUTOMATIC == static_cast<int>(Codec::automatic));
static_assert(LEEWAY_CODEC_AUTOMATIC == kCodecCount - 1);
static_assert(LEEWAY_CODEC_NVFP4 == static_cast<int>(Codec::nvfp4));
static_assert(LEEWAY_CODEC_SPARSE == static_cast<int>(Codec::sparse));
static_assert(LEEWAY_ROUNDING_STOCHASTIC == static_cast<int>(Rounding::stochastic));
static_assert(LEEWAY_SCALE_RULE_CEIL == static_cast<int>(ScaleRule::ceil));

// Converts `value` to a narrower integer. Refuses a value out of range, because the narrower
// integer would wrap and might then look valid.
template <typename T>
Status narrow(const char* name, std::int32_t value, T& out) {
  if (value < 0 || value > std::numeric_limits<T>::max())
    return Status::error(StatusCode::kInvalidArgument, "codec: %s %d is out of range", name, value);
  out = static_cast<T>(value);
  return Status();
}

}  // namespace

Result<CodecOptions> codec_of(const leeway_codec_options* given) {
  const auto read = read_sized("leeway_codec_options", given, kCodecDefaults);
  if (!read.ok()) return read.status();
  const auto codec = enum_of<Codec>("codec", read->codec, kCodecCount);
  if (!codec.ok()) return codec.status();
  const auto rounding = enum_of<Rounding>("codec: rounding", read->rounding, 3);
  if (!rounding.ok()) return rounding.status();
  const auto scale_rule = enum_of<ScaleRule>("codec: scale rule", read->scale_rule, 4);
  if (!scale_rule.ok()) return scale_rule.status();
  CodecOptions options(*codec);
  options.rounding = *rounding;
  options.scale_rule = *scale_rule;
  options.rotate = read->rotate != 0;
  options.clip = read->clip != 0;
  options.bound = static_cast<float>(read->bound);
  LEEWAY_C_TRY(narrow("draws", read->draws, options.draws));
  LEEWAY_C_TRY(narrow("kept", read->kept, options.kept));
  LEEWAY_C_TRY(narrow("group", read->group, options.group));
  return options;
}

leeway_codec_options codec_struct(const CodecOptions& options) {
  leeway_codec_options out = kCodecDefaults;
  out.codec = static_cast<leeway_codec>(options.codec);
  out.rounding = static_cast<leeway_rounding>(options.rounding);
  out.scale_rule = static_cast<leeway_scale_rule>(options.scale_rule);
  out.rotate = options.rotate;
  out.clip = options.clip;
  out.draws = options.draws;
  out.kept = options.kept;
  out.group = options.group;
  out.bound = static_cast<double>(options.bound);
  return out;
}

}  // namespace leeway::c_abi

using namespace leeway;
using namespace leeway::c_abi;

leeway_status leeway_codec_parse(const char* text, leeway_codec_options* options) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "text", text));
    LEEWAY_C_TRY(must_be_there(name, "options", options));
    const auto parsed = parse_codec(text);
    if (!parsed.ok()) return parsed.status();
    return write_sized("leeway_codec_options", codec_struct(*parsed), options);
  });
}

leeway_status leeway_codec_format(const leeway_codec_options* options, char* text,
                                  std::size_t text_bytes) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "text", text, text_bytes));
    const auto codec = codec_of(options);
    if (!codec.ok()) return codec.status();
    LEEWAY_C_TRY(validate(*codec));
    const std::string written = to_string(*codec);
    if (written.size() >= text_bytes) {
      return Status::error(StatusCode::kInvalidArgument,
                           "leeway_codec_format: %zu bytes are too few for \"%s\"", text_bytes,
                           written.c_str());
    }
    std::memcpy(text, written.c_str(), written.size() + 1);
    return Status();
  });
}

leeway_status leeway_codec_validate(const leeway_codec_options* options) {
  return guarded(__func__, [&](const char*) -> Status {
    const auto codec = codec_of(options);
    return codec.ok() ? validate(*codec) : codec.status();
  });
}
