// Reads C options of a communicator and of a call.
#include "c_abi/options.h"

#include <cstdio>

#include "c_abi/handles.h"
#include "c_abi/outcome.h"
#include "c_abi/payload.h"
#include "c_abi/sized.h"

namespace leeway::c_abi {
namespace {

constexpr leeway_options kOptionsDefaults = LEEWAY_OPTIONS_INIT;
constexpr leeway_collective_options kCallDefaults = LEEWAY_COLLECTIVE_OPTIONS_INIT;
constexpr int kTransportCount = LEEWAY_TRANSPORT_MIXED + 1;
constexpr int kCongestionControlCount = LEEWAY_CONGESTION_FABRIC + 1;
static_assert(LEEWAY_CONGESTION_FIXED == static_cast<int>(CongestionControl::fixed));
static_assert(LEEWAY_CONGESTION_WAN == static_cast<int>(CongestionControl::wan));
static_assert(LEEWAY_CONGESTION_AUTOMATIC == static_cast<int>(CongestionControl::automatic));
static_assert(LEEWAY_CONGESTION_FABRIC == static_cast<int>(CongestionControl::fabric));
static_assert(LEEWAY_TRANSPORT_CUSTOM == static_cast<int>(TransportKind::custom));
static_assert(LEEWAY_TRANSPORT_SHM == static_cast<int>(TransportKind::shm));
static_assert(LEEWAY_TRANSPORT_MIXED == static_cast<int>(TransportKind::mixed));
static_assert(LEEWAY_TRANSPORT_INPROC == static_cast<int>(TransportKind::inproc));
static_assert(LEEWAY_TRANSPORT_UCX == static_cast<int>(TransportKind::ucx));
static_assert(LEEWAY_BXOR == static_cast<int>(ReduceOp::bxor) && LEEWAY_BXOR == kReduceOpCount - 1);
static_assert(LEEWAY_AVG == static_cast<int>(ReduceOp::avg));
static_assert(LEEWAY_PREMUL_SUM == static_cast<int>(ReduceOp::premul_sum));
static_assert(LEEWAY_BEST_EFFORT == static_cast<int>(Delivery::Kind::best_effort));
static_assert(LEEWAY_AUGMENTED == static_cast<int>(Estimator::augmented));
static_assert(LEEWAY_RATIO == static_cast<int>(Estimator::ratio));
static_assert(LEEWAY_BOOL == static_cast<int>(DataType::boolean));
static_assert(LEEWAY_BOOL == kDataTypeCount - 1);
static_assert(LEEWAY_F8E4M3 == static_cast<int>(DataType::f8e4m3));
static_assert(LEEWAY_NO_DEADLINE == no_deadline.count());
static_assert(LEEWAY_NO_RANK == kNoRank && LEEWAY_ANY_RANK == kAnyRank);

std::string text_of(const char* text, const char* if_empty = "") {
  return text != nullptr && *text != 0 ? text : if_empty;
}

Result<std::optional<int>> place_of(const char* what, std::int32_t number) {
  if (number >= 0) return std::optional<int>(number);
  if (number == -1) return std::optional<int>();
  return Status::error(StatusCode::kInvalidArgument, "leeway_options.%s is %d; -1 means unset",
                       what, number);
}

Result<Scalar> scalar_of(const leeway_scalar* given) {
  if (given == nullptr) return Scalar(1);
  switch (given->type) {
    case LEEWAY_F64:
      return Scalar(given->value.f64);
    case LEEWAY_I64:
      return Scalar(given->value.i64);
    case LEEWAY_U64:
      return Scalar(given->value.u64);
    default:
      return Status::error(StatusCode::kInvalidArgument,
                           "leeway_scalar.type is %d, neither LEEWAY_F64, LEEWAY_I64 nor "
                           "LEEWAY_U64",
                           given->type);
  }
}

// Returns a span of the caller's memory at `data`, which may be NULL if `count` is 0.
template <typename T>
Result<std::span<T>> span_of(const char* name, T* data, std::size_t count) {
  if (data != nullptr) return std::span<T>(data, count);
  if (count == 0) return std::span<T>();
  return Status::error(StatusCode::kInvalidArgument,
                       "leeway_collective_options.%s is NULL and has %zu elements", name, count);
}

Status take_arrays(const leeway_collective_options& given, CollectiveOptions& options) {
  const auto weights = span_of("owner_weights", given.owner_weights, given.owner_weight_count);
  if (!weights.ok()) return weights.status();
  const auto guess = span_of("control_variate", given.control_variate, given.control_variate_count);
  if (!guess.ok()) return guess.status();
  const auto residual = span_of("residual", given.residual, given.residual_count);
  if (!residual.ok()) return residual.status();
  options.owner_weights = *weights;
  options.control_variate = *guess;
  options.residual = *residual;
  return Status();
}

// Writes faults as the text that parse_faults() reads.
std::string text_of(const FaultOptions& faults) {
  if (!faults.any()) return {};
  char text[256];
  std::snprintf(
      text, sizeof text,
      "loss=%.17g,burst=%.17g,dup=%.17g,reorder=%.17g,corrupt=%.17g,delay=%lldns,seed=%llu",
      faults.loss, faults.burst, faults.duplicate, faults.reorder, faults.corrupt,
      static_cast<long long>(faults.delay.count()), static_cast<unsigned long long>(faults.seed));
  std::string all = text;
  for (std::size_t i = 0; i < faults.link_loss.size(); ++i) {
    std::snprintf(text, sizeof text, "%s%.17g", i == 0 ? ",link=" : ",", faults.link_loss[i]);
    all += text;
  }
  if (!faults.list.empty()) all += ",list=" + faults.list;
  return all;
}

// Owns the strings that leeway_options_from_environment() hands out, for this thread.
struct EnvironmentTexts {
  Options options;
  std::string faults;
};

leeway_options struct_of(const EnvironmentTexts& read) {
  const Options& options = read.options;
  leeway_options out = kOptionsDefaults;
  out.rank = options.rank.value_or(-1);
  out.world_size = options.world_size.value_or(-1);
  out.rendezvous = options.rendezvous.c_str();
  out.transport = static_cast<leeway_transport>(options.transport);
  out.multicast = options.multicast;
  out.bind_address = options.bind_address.c_str();
  out.join_timeout_ns = options.join_timeout.count();
  out.peer_timeout_ns = options.peer_timeout.count();
  out.datagram_bytes = options.datagram_bytes;
  out.socket_buffer_bytes = options.socket_buffer_bytes;
  out.window_bytes = options.window_bytes;
  out.seed = options.seed;
  out.faults = read.faults.c_str();
  out.log_level = options.log_level.c_str();
  out.communicator_name = options.communicator_name.c_str();
  out.restart_count = options.restart_count;
  out.congestion = static_cast<leeway_congestion_control>(options.congestion);
  out.rate_bits_per_second = options.rate_bits_per_second;
  out.secret_file = options.secret_file.c_str();
  out.insecure = options.insecure;
  out.metrics = options.metrics.c_str();
  out.trace = options.trace.c_str();
  out.port = options.port;
  out.tls_ca = options.tls_ca.c_str();
  out.tls_certificate = options.tls_certificate.c_str();
  out.tls_key = options.tls_key.c_str();
  out.site = options.site.c_str();
  out.lanes = options.lanes;
  return out;
}

}  // namespace

Result<Delivery::Kind> delivery_of(const char* what, leeway_delivery number) {
  return enum_of<Delivery::Kind>(what, number, LEEWAY_BEST_EFFORT + 1);
}

Result<DataType> data_type_of(leeway_data_type number) {
  return enum_of<DataType>("data type", number, kDataTypeCount);
}

Result<Options> options_of(const leeway_options* given) {
  const auto read = read_sized("leeway_options", given, kOptionsDefaults);
  if (!read.ok()) return read.status();
  const auto rank = place_of("rank", read->rank);
  if (!rank.ok()) return rank.status();
  const auto world_size = place_of("world_size", read->world_size);
  if (!world_size.ok()) return world_size.status();
  const auto transport = enum_of<TransportKind>("transport", read->transport, kTransportCount);
  if (!transport.ok()) return transport.status();
  const auto congestion =
      enum_of<CongestionControl>("congestion", read->congestion, kCongestionControlCount);
  if (!congestion.ok()) return congestion.status();
  auto faults = parse_faults(text_of(read->faults));
  if (!faults.ok()) return faults.status();
  Options options;
  options.rank = *rank;
  options.world_size = *world_size;
  options.rendezvous = text_of(read->rendezvous);
  options.transport = *transport;
  options.multicast = read->multicast != 0;
  options.bind_address = text_of(read->bind_address);
  options.join_timeout = duration_of(read->join_timeout_ns);
  options.peer_timeout = duration_of(read->peer_timeout_ns);
  options.datagram_bytes = read->datagram_bytes;
  options.socket_buffer_bytes = read->socket_buffer_bytes;
  options.window_bytes = read->window_bytes;
  options.seed = read->seed;
  options.faults = std::move(*faults);
  options.log_level = text_of(read->log_level, "warn");
  options.communicator_name = text_of(read->communicator_name, "world");
  if (read->store != nullptr) options.store = read->store->value;
  options.restart_count = read->restart_count;
  options.congestion = *congestion;
  options.rate_bits_per_second = read->rate_bits_per_second;
  options.secret_file = text_of(read->secret_file);
  options.insecure = read->insecure != 0;
  options.metrics = text_of(read->metrics);
  options.trace = text_of(read->trace);
  options.port = read->port;
  options.tls_ca = text_of(read->tls_ca);
  options.tls_certificate = text_of(read->tls_certificate);
  options.tls_key = text_of(read->tls_key);
  options.site = text_of(read->site);
  options.lanes = read->lanes;
  return options;
}

Result<Call> call_of(const leeway_collective_options* given) {
  const auto read = read_sized("leeway_collective_options", given, kCallDefaults);
  if (!read.ok()) return read.status();
  const auto op = enum_of<ReduceOp>("op", read->op, kReduceOpCount);
  if (!op.ok()) return op.status();
  const auto delivery = delivery_of("delivery", read->delivery);
  if (!delivery.ok()) return delivery.status();
  const auto spread = delivery_of("spread", read->spread);
  if (!spread.ok()) return spread.status();
  const auto estimator = enum_of<Estimator>("estimator", read->estimator, LEEWAY_AUGMENTED + 1);
  if (!estimator.ok()) return estimator.status();
  const auto codec = codec_of(read->codec);
  if (!codec.ok()) return codec.status();
  const auto spread_codec = codec_of(read->spread_codec);
  if (!spread_codec.ok()) return spread_codec.status();
  const auto factor = scalar_of(read->factor);
  if (!factor.ok()) return factor.status();
  auto source = source_of(read->source);
  if (!source.ok()) return source.status();
  auto sink = sink_of(read->sink);
  if (!sink.ok()) return sink.status();
  Call call;
  CollectiveOptions& options = call.options;
  options.op = *op;
  options.factor = *factor;
  // Best effort means a loss_max of 1, which a C program need not set.
  options.delivery = {*delivery, *delivery == Delivery::Kind::best_effort ? 1.0 : read->loss_max,
                      duration_of(read->deadline_ns)};
  options.spread = *spread;
  options.codec = *codec;
  if (read->spread_codec != nullptr) options.spread_codec = *spread_codec;
  options.estimator = *estimator;
  options.weight = read->weight;
  options.tag = read->tag;
  options.confirm_use = read->confirm_use != 0;
  options.keep_non_finite = read->keep_non_finite != 0;
  LEEWAY_C_TRY(take_arrays(*read, options));
  call.source = std::move(*source);
  call.sink = std::move(*sink);
  options.source = call.source.get();
  options.sink = call.sink.get();
  return call;
}

}  // namespace leeway::c_abi

using namespace leeway;
using namespace leeway::c_abi;

leeway_status leeway_options_from_environment(leeway_options* options,
                                              leeway_membership membership) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "options", options));
    const auto who = enum_of<Options::Membership>("membership", membership, 2);
    if (!who.ok()) return who.status();
    auto read = Options::from_environment(*who);
    if (!read.ok()) return read.status();
    thread_local EnvironmentTexts texts;
    texts.options = std::move(*read);
    texts.faults = text_of(texts.options.faults);
    return write_sized("leeway_options", struct_of(texts), options);
  });
}

std::size_t leeway_data_type_bytes(leeway_data_type type) {
  const auto known = data_type_of(type);
  return known.ok() ? size_of(*known) : 0;
}

const char* leeway_data_type_name(leeway_data_type type) {
  const auto known = data_type_of(type);
  return known.ok() ? to_string(*known).data() : "unknown";
}

const char* leeway_congestion_control_name(leeway_congestion_control control) {
  const auto known = enum_of<CongestionControl>("congestion", control, kCongestionControlCount);
  return known.ok() ? to_string(*known).data() : "unknown";
}

const char* leeway_transport_name(leeway_transport transport) {
  const auto known = enum_of<TransportKind>("transport", transport, kTransportCount);
  return known.ok() ? to_string(*known).data() : "unknown";
}
