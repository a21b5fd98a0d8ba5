#include "perf/settings.h"

#include <string_view>

#include "base/read_number.h"
#include "base/short_names.h"
#include "perf/sweep.h"

namespace leeway::tools::perf {
namespace {

Status unknown(const char* what, const std::string& text, const char* known) {
  return Status::error(StatusCode::kInvalidArgument, "unknown %s '%s'; there are %s", what,
                       text.c_str(), known);
}

Result<DataType> parse_dtype(const std::string& name) {
  if (const auto type = type_of_short_name(name)) return *type;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (name == to_string(type)) return type;
  }
  return unknown(
      "type", name,
      "float, double, half, bfloat16, int8, int32, int64, uint8, uint32, uint64, f8e4m3, "
      "f8e5m2, bool");
}

}  // namespace

std::string_view column_name(ReduceOp op) {
  return op == ReduceOp::premul_sum ? "mulsum" : to_string(op);
}

namespace {

Result<ReduceOp> parse_redop(const std::string& name) {
  for (int i = 0; i < kReduceOpCount; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    if (name == to_string(op) || name == column_name(op)) return op;
  }
  return unknown("reduction", name, "sum, avg, prod, min, max, premul_sum, band, bor, bxor");
}

Duration deadline_of(const Arguments& arguments, Delivery::Kind kind) {
  if (arguments.deadline_ms > 0) {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(arguments.deadline_ms));
  }
  return kind == Delivery::Kind::exact ? kExactDeadline : kLossyDeadline;
}

Result<Delivery::Kind> parse_spread(const std::string& text) {
  if (text == "exact") return Delivery::Kind::exact;
  if (text == "best_effort") return Delivery::Kind::best_effort;
  return unknown("spread", text, "exact, best_effort");
}

Result<Delivery> parse_delivery(const Arguments& arguments) {
  const std::string& text = arguments.delivery;
  if (text == "exact") return exact(deadline_of(arguments, Delivery::Kind::exact));
  if (text == "best_effort")
    return best_effort(deadline_of(arguments, Delivery::Kind::best_effort));
  constexpr std::string_view kBounded = "bounded:";
  double loss_max = 0;
  if (text.starts_with(kBounded) &&
      read_number(std::string_view(text).substr(kBounded.size()), loss_max) && loss_max >= 0 &&
      loss_max <= 1) {
    return bounded(loss_max, deadline_of(arguments, Delivery::Kind::bounded));
  }
  return unknown("delivery", text, "exact, best_effort and bounded:LOSS with LOSS from 0 to 1");
}

Status check_counts(const Arguments& arguments) {
  const auto refuse = [](const char* text) {
    return Status::error(StatusCode::kInvalidArgument, "%s", text);
  };
  if (arguments.ranks < 0) return refuse("--ranks must be 1 or more");
  if (arguments.iterations < 1) return refuse("--iters must be 1 or more");
  if (arguments.communicators < 0 || arguments.communicators > kCommunicatorsMax) {
    return Status::error(StatusCode::kInvalidArgument, "--communicators %d is outside 0 .. %d",
                         arguments.communicators, kCommunicatorsMax);
  }
  if (arguments.back_to_back < 0) return refuse("--back-to-back must be 1 or more");
  if (arguments.warmup < 0 || arguments.checks < 0)
    return refuse("--warmup and --check must be 0 or more");
  if (arguments.root < 0 || arguments.root >= kNoRank) return refuse("--root is not a rank");
  if (!(arguments.deadline_ms >= 0 && arguments.deadline_ms <= 1e9))
    return refuse("--deadline-ms must be positive, and 1e9 or less");
  const double loss = arguments.loss.value_or(0);
  if (!(loss >= 0 && loss <= 1)) return refuse("--loss is a fraction, 0 .. 1");
  if (!(arguments.burst.value_or(1) >= 1))
    return refuse("--burst is a mean length in packets, 1 or more");
  return Status();
}

// Parses --spread-codec. Returns nullopt if it was not given.
Result<std::optional<CodecOptions>> parse_spread_codec(const Arguments& arguments) {
  if (arguments.spread_codec.empty()) return std::optional<CodecOptions>();
  if (arguments.operation != to_string(Operation::all_reduce)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "--spread-codec is of all_reduce; %s has one half only",
                         arguments.operation.c_str());
  }
  const auto codec = parse_codec(arguments.spread_codec);
  if (!codec.ok()) return codec.status();
  return std::optional<CodecOptions>(*codec);
}

Result<CollectiveOptions> parse_collective(const Arguments& arguments) {
  const auto redop = parse_redop(arguments.redop);
  if (!redop.ok()) return redop.status();
  const auto codec = parse_codec(arguments.codec);
  if (!codec.ok()) return codec.status();
  const auto spread_codec = parse_spread_codec(arguments);
  if (!spread_codec.ok()) return spread_codec.status();
  const auto estimator = parse_estimator(arguments.estimator);
  if (!estimator.ok()) return estimator.status();
  const auto delivery = parse_delivery(arguments);
  if (!delivery.ok()) return delivery.status();
  const auto spread = parse_spread(arguments.spread);
  if (!spread.ok()) return spread.status();
  CollectiveOptions options;
  options.op = *redop;
  options.codec = *codec;
  options.spread_codec = *spread_codec;
  options.estimator = *estimator;
  options.delivery = *delivery;
  options.spread = *spread;
  return options;
}

Result<std::vector<std::size_t>> parse_sizes(const Arguments& arguments) {
  const auto bytes_min = parse_bytes(arguments.bytes_min);
  if (!bytes_min.ok()) return bytes_min.status();
  const auto bytes_max = parse_bytes(arguments.bytes_max);
  if (!bytes_max.ok()) return bytes_max.status();
  return sweep(*bytes_min, *bytes_max, arguments.factor);
}

}  // namespace

Result<Settings> understand(const Arguments& arguments) {
  if (const Status status = check_counts(arguments); !status.ok()) return status;
  const auto operation = parse_operation(arguments.operation);
  if (!operation.ok()) return operation.status();
  const auto dtype = parse_dtype(arguments.dtype);
  if (!dtype.ok()) return dtype.status();
  const auto sizes = parse_sizes(arguments);
  if (!sizes.ok()) return sizes.status();
  const auto collective = parse_collective(arguments);
  if (!collective.ok()) return collective.status();
  Settings settings;
  settings.operation = *operation;
  settings.dtype = *dtype;
  settings.root = static_cast<Rank>(arguments.root);
  settings.sizes = *sizes;
  settings.iterations = arguments.iterations;
  settings.warmup = arguments.warmup;
  settings.checks = arguments.checks;
  settings.back_to_back = arguments.back_to_back;
  settings.allocate = arguments.allocate;
  settings.communicators = arguments.communicators;
  settings.collective = *collective;
  settings.json_path = arguments.json_path;
  return settings;
}

Result<Options> communicator_options(const Arguments& arguments) {
  auto options = Options::from_environment();
  if (!options.ok()) return options;
  if (arguments.loss) options->faults.loss = *arguments.loss;
  if (arguments.burst) options->faults.burst = *arguments.burst;
  if (arguments.seed) options->seed = options->faults.seed = *arguments.seed;
  if (!arguments.transport.empty()) {
    const auto kind = parse_transport(arguments.transport);
    if (!kind.ok())
      return Status::error(kind.status().code(), "--transport: %s", kind.status().c_str());
    options->transport = *kind;
  }
  options->multicast |= arguments.multicast;
  if (arguments.lanes != 0) options->lanes = arguments.lanes;
  if (arguments.datagram_bytes != 0) options->datagram_bytes = arguments.datagram_bytes;
  return options;
}

}  // namespace leeway::tools::perf
