#include "train/settings.h"

#include <chrono>
#include <cmath>
#include <string_view>

#include "base/read_number.h"

namespace leeway::tools::train {
namespace {

// Width of an attention head. Narrower heads work poorly; wider ones leave too few heads.
constexpr int kHeadWidth = 16;

constexpr std::int64_t kStepsMax = 100'000'000;
constexpr int kRepeatMax = 1000;
constexpr int kBatchMax = 4096;
constexpr int kContextMax = 4096;
constexpr int kLayersMax = 96;
constexpr int kWidthMax = 8192;
constexpr std::int64_t kAgeMaxMax = 255;  // ReplicaOptions::age_max

Status refuse(const char* text) {
  return Status::error(StatusCode::kInvalidArgument, "%s", text);
}

Status check_range(const char* option, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return Status();
  return Status::error(StatusCode::kInvalidArgument, "%s %lld is not within %lld .. %lld", option,
                       static_cast<long long>(value), static_cast<long long>(min),
                       static_cast<long long>(max));
}

Status check_model(const Arguments& a) {
  for (const Status& status : {check_range("--batch", a.batch, 1, kBatchMax),
                               check_range("--context", a.context, 2, kContextMax),
                               check_range("--layers", a.layers, 1, kLayersMax),
                               check_range("--width", a.width, kHeadWidth, kWidthMax)}) {
    if (!status.ok()) return status;
  }
  if (a.width % kHeadWidth != 0) {
    return Status::error(StatusCode::kInvalidArgument,
                         "--width %d is not a multiple of %d, the width of a head", a.width,
                         kHeadWidth);
  }
  return Status();
}

Status check_schedule(const Arguments& a) {
  for (const Status& status : {check_range("--ranks", a.ranks, 0, kNoRank - 1),
                               check_range("--steps", a.steps, 1, kStepsMax),
                               check_range("--repeat", a.repeat, 1, kRepeatMax),
                               check_range("--age-max", a.age_max, 0, kAgeMaxMax)}) {
    if (!status.ok()) return status;
  }
  if (!(a.learning_rate > 0 && std::isfinite(a.learning_rate)))
    return refuse("--learning-rate must be positive");
  if (!(a.deadline_ms > 0 && a.deadline_ms <= 1e9)) return refuse("--deadline-ms must be positive");
  const double loss = a.loss.value_or(0);
  if (!(loss >= 0 && loss < 1)) return refuse("--loss is a fraction, 0 or more and below 1");
  if (const double burst = a.burst.value_or(1); !(burst >= 1 && std::isfinite(burst))) {
    return refuse("--burst is a mean length in packets, 1 or more");
  }
  return Status();
}

Result<Mode> parse_mode(std::string_view name) {
  if (name == "replica") return Mode::replica;
  if (name == "ddp") return Mode::ddp;
  return Status::error(StatusCode::kInvalidArgument, "unknown mode '%.*s'; there are replica, ddp",
                       static_cast<int>(name.size()), name.data());
}

Result<Delivery> parse_delivery(std::string_view text, Duration deadline) {
  if (text == "exact") return exact(deadline);
  if (text == "best_effort") return best_effort(deadline);
  constexpr std::string_view kBounded = "bounded:";
  if (text.starts_with(kBounded)) {
    double loss_max = 0;
    const bool whole = read_number(text.substr(kBounded.size()), loss_max);
    if (whole && loss_max >= 0 && loss_max <= 1) return bounded(loss_max, deadline);
  }
  return Status::error(
      StatusCode::kInvalidArgument,
      "unknown delivery '%.*s'; there are best_effort, bounded:LOSS with LOSS from 0 to 1, exact",
      static_cast<int>(text.size()), text.data());
}

// Refuses options of the other mode's half: only replica mode has parameter broadcasts, and only
// ddp has a spread half.
Status check_halves(const Arguments& a, Mode mode) {
  if (mode == Mode::ddp && !a.parameter_codec.empty()) {
    return refuse(
        "--parameter-codec is of replica mode; the spread half of ddp has --spread-codec");
  }
  if (mode == Mode::replica && !a.spread_codec.empty()) {
    return refuse("--spread-codec is of ddp mode; parameter broadcasts have --parameter-codec");
  }
  return Status();
}

Result<std::optional<CodecOptions>> parse_spread_codec(const Arguments& a) {
  if (a.spread_codec.empty()) return std::optional<CodecOptions>();
  const auto codec = parse_codec(a.spread_codec);
  if (!codec.ok()) return codec.status();
  return std::optional<CodecOptions>(*codec);
}

Result<CollectiveOptions> parse_reduce(const Arguments& a) {
  const auto codec = parse_codec(a.codec);
  if (!codec.ok()) return codec.status();
  if (a.error_feedback && codec->codec == Codec::native) {
    return refuse(
        "--error-feedback makes up for what encoding leaves out; codec native leaves out nothing");
  }
  const auto spread_codec = parse_spread_codec(a);
  if (!spread_codec.ok()) return spread_codec.status();
  const auto estimator = parse_estimator(a.estimator);
  if (!estimator.ok()) return estimator.status();
  const auto deadline = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(a.deadline_ms));
  const auto delivery = parse_delivery(a.delivery, deadline);
  if (!delivery.ok()) return delivery.status();
  CollectiveOptions options;
  options.op = ReduceOp::avg;
  options.delivery = *delivery;
  options.spread = Delivery::Kind::exact;
  options.codec = *codec;
  options.spread_codec = *spread_codec;
  options.estimator = *estimator;
  return options;
}

Result<CodecOptions> parse_parameter_codec(const Arguments& a) {
  if (a.parameter_codec.empty()) return CodecOptions();
  auto codec = parse_codec(a.parameter_codec);
  if (codec.ok() && codec->codec == Codec::automatic) {
    return refuse(
        "--parameter-codec automatic: it judges gradients; parameters need a fixed codec");
  }
  return codec;
}

Result<ReplicaOptions> replica_options(const Arguments& a, const Delivery& delivery) {
  const auto codec = parse_parameter_codec(a);
  if (!codec.ok()) return codec.status();
  ReplicaOptions options;
  options.codec = *codec;
  options.age_max = static_cast<std::uint32_t>(a.age_max);
  // A replica requests no repair, because its next broadcast replaces a stale value. So bounded and
  // best-effort delivery mean the same here.
  options.delivery =
      delivery.kind == Delivery::Kind::exact ? Delivery::Kind::exact : Delivery::Kind::best_effort;
  options.deadline = delivery.deadline;
  return options;
}

Options with_faults_of(const Arguments& a, Options options) {
  FaultOptions& faults = options.faults;
  if (a.loss) {
    faults.loss = *a.loss;
  } else if (!faults.any()) {
    faults.loss = kLossDefault;
  }
  if (a.burst) faults.burst = *a.burst;
  options.datagram_bytes = a.datagram_bytes;
  options.communicator_name = "train";
  return options;
}

}  // namespace

const char* to_string(Mode mode) {
  return mode == Mode::replica ? "replica" : "ddp";
}

Result<Settings> understand(const Arguments& arguments, const Options& environment) {
  if (const Status status = check_model(arguments); !status.ok()) return status;
  if (const Status status = check_schedule(arguments); !status.ok()) return status;
  const auto mode = parse_mode(arguments.mode);
  if (!mode.ok()) return mode.status();
  if (const Status status = check_halves(arguments, *mode); !status.ok()) return status;
  const auto reduce = parse_reduce(arguments);
  if (!reduce.ok()) return reduce.status();
  const auto replica = replica_options(arguments, reduce->delivery);
  if (!replica.ok()) return replica.status();
  const int ranks = arguments.ranks > 0 ? arguments.ranks : environment.world_size.value_or(0);
  const auto compute = understand_compute(arguments.compute, arguments.batch, ranks);
  if (!compute.ok()) return compute.status();

  Settings settings;
  settings.mode = *mode;
  settings.steps = static_cast<std::uint64_t>(arguments.steps);
  settings.seed = arguments.seed;
  settings.repeat = arguments.repeat;
  settings.twin = arguments.twin;
  settings.corpus = arguments.corpus;
  settings.batch = arguments.batch;
  settings.context = arguments.context;
  settings.layers = arguments.layers;
  settings.width = arguments.width;
  settings.heads = arguments.width / kHeadWidth;
  settings.learning_rate = arguments.learning_rate;
  settings.compute = *compute;
  settings.reduce = *reduce;
  settings.error_feedback = arguments.error_feedback;
  settings.replica = *replica;
  settings.communicator = with_faults_of(arguments, environment);
  settings.json_path = arguments.json_path;
  return settings;
}

Settings loss_free_twin(const Settings& settings) {
  Settings twin = settings;
  // The twin must use the lossy run's transport. With injected faults, the automatic choice of the
  // lossy run is UDP.
  if (settings.communicator.faults.any() &&
      settings.communicator.transport == TransportKind::automatic)
    twin.communicator.transport = TransportKind::udp;
  // Without injected faults, the network itself loses packets. Then only exact calls make the twin
  // free of loss.
  if (!settings.communicator.faults.any()) {
    twin.reduce.delivery = exact(settings.reduce.delivery.deadline);
    twin.reduce.spread = Delivery::Kind::exact;
    twin.replica.delivery = Delivery::Kind::exact;
  }
  twin.communicator.faults = FaultOptions{};
  twin.communicator.communicator_name = "twin";
  twin.reduce.codec = Codec::native;
  twin.reduce.spread_codec.reset();
  twin.error_feedback = false;
  twin.replica.codec = Codec::native;
  twin.compute.straggler = {};
  twin.compute.threshold = no_threshold;
  return twin;
}

Settings without_threshold(const Settings& settings) {
  Settings whole = settings;
  whole.communicator.communicator_name = "no-threshold";
  whole.compute.threshold = no_threshold;
  return whole;
}

Options communicator_options(const Settings& settings, std::uint64_t seed) {
  Options options = settings.communicator;
  options.seed = seed;
  options.faults.seed = seed;
  return options;
}

}  // namespace leeway::tools::train
