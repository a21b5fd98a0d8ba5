// The one table of names of every public enumeration. Values that no enumerator has (they may come
// off the wire) are called "unknown".
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "leeway/codec.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {
namespace {

using std::string_view;

// Names in the order of the enumerators.
constexpr std::array<string_view, kDataTypeCount> kDataTypes = {
    "float", "double", "half",   "bfloat16", "int8",   "int32", "int64",
    "uint8", "uint32", "uint64", "f8e4m3",   "f8e5m2", "bool"};
constexpr std::array<string_view, kReduceOpCount> kReduceOps = {
    "sum", "avg", "prod", "min", "max", "premul_sum", "band", "bor", "bxor"};
constexpr std::array<string_view, kCodecCount> kCodecs = {
    "native",     "fp32",           "fp16",           "bf16",       "fp8_e4m3",
    "fp8_e5m2",   "fp8_e4m3_block", "fp8_e5m2_block", "mxfp8_e4m3", "mxfp8_e5m2",
    "mxfp6_e2m3", "mxfp6_e3m2",     "mxfp4",          "nvfp4",      "nvfp4_te",
    "luq",        "int8",           "sparse",         "automatic"};
constexpr std::array<string_view, 3> kRoundings = {"automatic", "nearest", "stochastic"};
constexpr std::array<string_view, 4> kScaleRules = {"automatic", "floor", "even", "ceil"};
constexpr std::array<string_view, 6> kEstimators = {
    "zero_fill", "ratio", "symmetric_ratio", "stratified", "horvitz_thompson", "augmented"};
constexpr std::array<string_view, 3> kDeliveries = {"exact", "bounded", "best_effort"};
constexpr std::array<string_view, 8> kTransports = {"auto",   "udp",    "verbs", "ucx",
                                                    "inproc", "custom", "shm",   "mixed"};
constexpr std::array<string_view, 6> kCongestionControls = {"none", "fixed",     "scavenger",
                                                            "wan",  "automatic", "fabric"};
constexpr std::array<string_view, 10> kStatusCodes = {
    "ok",          "invalid_argument",   "mismatch",    "deadline_exceeded", "peer_lost",
    "unavailable", "resource_exhausted", "unsupported", "cancelled",         "internal"};

static_assert(kDataTypes.size() == static_cast<std::size_t>(DataType::boolean) + 1);
static_assert(kReduceOps.size() == static_cast<std::size_t>(ReduceOp::bxor) + 1);
static_assert(kCodecs.size() == static_cast<std::size_t>(Codec::automatic) + 1);
static_assert(kRoundings.size() == static_cast<std::size_t>(Rounding::stochastic) + 1);
static_assert(kScaleRules.size() == static_cast<std::size_t>(ScaleRule::ceil) + 1);
static_assert(kEstimators.size() == static_cast<std::size_t>(Estimator::augmented) + 1);
static_assert(kDeliveries.size() == static_cast<std::size_t>(Delivery::Kind::best_effort) + 1);
static_assert(kTransports.size() == static_cast<std::size_t>(TransportKind::mixed) + 1);
static_assert(kCongestionControls.size() ==
              static_cast<std::size_t>(CongestionControl::fabric) + 1);
static_assert(kStatusCodes.size() == static_cast<std::size_t>(StatusCode::kInternal) + 1);

template <typename Enum>
string_view name_of(Enum value, std::span<const string_view> names) {
  const auto i = static_cast<std::size_t>(value);
  return i < names.size() ? names[i] : "unknown";
}

// Returns the value called `name`. `left_out` is the index of a name that parse() refuses.
template <typename Enum>
Result<Enum> parse(const char* what, string_view name, std::span<const string_view> names,
                   std::size_t left_out = SIZE_MAX) {
  std::string valid;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == left_out) continue;
    if (names[i] == name) return static_cast<Enum>(i);
    valid.append(i == 0 ? "" : ", ").append(names[i]);
  }
  constexpr int kQuotedMax =
      40;  // bounds a name of any length, so that the list of valid ones is never cut
  return Status::error(StatusCode::kInvalidArgument, "unknown %s \"%.*s\"; valid are %s", what,
                       static_cast<int>(name.size() < kQuotedMax ? name.size() : kQuotedMax),
                       name.data(), valid.c_str());
}

}  // namespace

string_view to_string(DataType type) {
  return name_of(type, kDataTypes);
}
string_view to_string(ReduceOp op) {
  return name_of(op, kReduceOps);
}
string_view to_string(Codec codec) {
  return name_of(codec, kCodecs);
}
string_view to_string(Rounding rounding) {
  return name_of(rounding, kRoundings);
}
string_view to_string(ScaleRule rule) {
  return name_of(rule, kScaleRules);
}
string_view to_string(Estimator estimator) {
  return name_of(estimator, kEstimators);
}
string_view to_string(Delivery::Kind kind) {
  return name_of(kind, kDeliveries);
}
string_view to_string(TransportKind kind) {
  return name_of(kind, kTransports);
}
string_view to_string(CongestionControl control) {
  return name_of(control, kCongestionControls);
}
string_view to_string(StatusCode code) {
  return name_of(code, kStatusCodes);
}

Result<Codec> parse_codec_name(string_view name) {
  return parse<Codec>("codec", name, kCodecs);
}
Result<Estimator> parse_estimator(string_view name) {
  return parse<Estimator>("estimator", name, kEstimators);
}
Result<TransportKind> parse_transport(string_view name) {
  // A caller's own transport cannot be asked for by name.
  return parse<TransportKind>("transport", name, kTransports,
                              static_cast<std::size_t>(TransportKind::custom));
}
Result<CongestionControl> parse_congestion_control(string_view name) {
  return parse<CongestionControl>("congestion control", name, kCongestionControls);
}

}  // namespace v0
}  // namespace leeway
