#include "collective/operation_spec.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/limits.h"
#include "codec/codec.h"
#include "codec/reduce.h"

namespace leeway::collective {
namespace {

bool is_weight(double weight) {
  return weight == 0.0 || (weight >= limits::kWeightMin && weight <= limits::kWeightMax);
}

Status invalid(const OperationSpec& spec, const char* what) {
  return Status::error(StatusCode::kInvalidArgument, "%s: %s (input %zu, output %zu elements)",
                       to_string(spec.kind), what, spec.input.count, spec.output.count);
}

bool rooted(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::reduce ||
         kind == OperationKind::gather || kind == OperationKind::scatter;
}
// Returns true if element type and count are taken from the output, because some ranks have no
// input.
bool goes_by_output(OperationKind kind) {
  return kind == OperationKind::scatter || kind == OperationKind::recv;
}
bool uses_input(const OperationSpec& spec, Rank self) {
  if (spec.kind == OperationKind::recv) return false;
  return spec.kind != OperationKind::scatter || self == spec.peer;
}
bool uses_output(const OperationSpec& spec, Rank self) {
  if (spec.kind == OperationKind::send) return false;
  const bool at_root = spec.kind == OperationKind::reduce || spec.kind == OperationKind::gather;
  return !at_root || self == spec.peer;
}

// Returns true if the size of `count` elements in bytes can be represented.
bool has_size(std::size_t count, DataType dtype) {
  constexpr std::size_t kBytesMax = std::numeric_limits<std::ptrdiff_t>::max();
  return count <= kBytesMax / std::max<std::size_t>(1, size_of(dtype));
}

// Returns true if whole == part * ranks, without computing the product, which might overflow.
bool is_multiple(std::size_t whole, std::size_t part, std::size_t ranks) {
  return whole / ranks == part && whole % ranks == 0;
}

Status check_sizes(const OperationSpec& spec, Rank self, int size) {
  const std::size_t in = spec.input.count;
  const std::size_t out = spec.output.count;
  const auto n = static_cast<std::size_t>(size);
  switch (spec.kind) {
    case OperationKind::all_reduce:
    case OperationKind::broadcast:
    case OperationKind::barrier:
    case OperationKind::replica_reduce:
    case OperationKind::replica_broadcast:
      if (in != out) return invalid(spec, "input and output differ in size");
      break;
    case OperationKind::reduce:
      if (self == spec.peer && in != out) return invalid(spec, "input and output differ in size");
      break;
    case OperationKind::reduce_scatter:
      if (!is_multiple(in, out, n)) return invalid(spec, "input must hold size x output elements");
      break;
    case OperationKind::all_gather:
    case OperationKind::split:
      if (!is_multiple(out, in, n)) return invalid(spec, "output must hold size x input elements");
      break;
    case OperationKind::gather:
      if (self == spec.peer && !is_multiple(out, in, n))
        return invalid(spec, "output must hold size x input elements");
      break;
    case OperationKind::scatter:
      if (self == spec.peer && !is_multiple(in, out, n))
        return invalid(spec, "input must hold size x output elements");
      break;
    case OperationKind::all_to_all:
      if (in != out || in % n != 0)
        return invalid(spec, "input and output must hold size equal blocks");
      break;
    case OperationKind::send:
    case OperationKind::recv:
    case OperationKind::exchange:
      break;
  }
  return Status();
}

Status check_blocks(const OperationSpec& spec, Rank self, int size) {
  const auto fault_of = [&](const BlockList& blocks, std::size_t elements) {
    return blocks.uneven() ? blocks.fault(size, elements) : nullptr;
  };
  if (const char* fault = fault_of(spec.input_blocks, spec.input.count); fault != nullptr)
    return invalid(spec, fault);
  if (const char* fault = fault_of(spec.output_blocks, spec.output.count); fault != nullptr)
    return invalid(spec, fault);
  if (spec.output_blocks.overlaps()) return invalid(spec, "blocks of the output overlap");
  switch (spec.kind) {
    case OperationKind::reduce_scatter:
      if (spec.input_blocks.overlaps()) return invalid(spec, "blocks of the input overlap");
      if (spec.output.count != spec.input_blocks.count(self))
        return invalid(spec, "output must hold as many elements as the rank's own block");
      break;
    case OperationKind::all_gather:
      if (spec.input.count != spec.output_blocks.count(self))
        return invalid(spec, "input must hold as many elements as the rank's own block");
      break;
    case OperationKind::all_to_all:
      if (spec.input_blocks.count(self) != spec.output_blocks.count(self))
        return invalid(spec, "the rank's block to itself and that from itself differ in size");
      break;
    default:
      return invalid(spec, "uneven blocks have no meaning here");
  }
  return Status();
}

// Where one tensor of an operation in place lies inside the other one. Each value is an offset in
// elements from the start of the outer tensor.
struct InPlace {
  std::size_t input_in_output = 0;
  std::size_t output_in_input = 0;
};

InPlace in_place_of(const OperationSpec& spec, Rank self) {
  switch (spec.kind) {
    case OperationKind::all_gather:
      return {.input_in_output =
                  spec.uneven() ? spec.output_blocks.offset(self) : self * spec.input.count};
    case OperationKind::gather:
      return {.input_in_output = self * spec.input.count};
    case OperationKind::reduce_scatter:
      return {.output_in_input =
                  spec.uneven() ? spec.input_blocks.offset(self) : self * spec.output.count};
    case OperationKind::scatter:
      return {.output_in_input = self * spec.output.count};
    default:
      return {};
  }
}

// Checks that input and output have no common memory, unless the operation is in place.
Status check_overlap(const OperationSpec& spec, Rank self, int size) {
  if (!spec.contents || spec.elsewhere() || !uses_input(spec, self) || !uses_output(spec, self))
    return Status();
  if (spec.input.bytes() == 0 || spec.output.bytes() == 0) return Status();
  const auto in = reinterpret_cast<std::uintptr_t>(spec.input.data);
  const auto out = reinterpret_cast<std::uintptr_t>(spec.output.data);
  if (in >= out + spec.output.bytes() || out >= in + spec.input.bytes()) return Status();
  const std::size_t element = size_of(spec.input.dtype);
  const InPlace place = in_place_of(spec, self);
  const bool same = in + place.output_in_input * element == out + place.input_in_output * element;
  if (same && (spec.kind != OperationKind::all_to_all || size == 1)) return Status();
  return invalid(spec, "input and output overlap, and not as an operation in place");
}

Status check_buffers(const OperationSpec& spec, Rank self, int size) {
  const bool in = uses_input(spec, self);
  const bool out = uses_output(spec, self);
  if ((in && !has_size(spec.input.count, spec.input.dtype)) ||
      (out && !has_size(spec.output.count, spec.output.dtype))) {
    return invalid(spec, "there is no memory of so many elements");
  }
  const bool touches = spec.contents && !spec.elsewhere();
  if (touches && in && spec.input.count > 0 && spec.input.data == nullptr)
    return invalid(spec, "input is null");
  if (touches && out && spec.output.count > 0 && spec.output.data == nullptr)
    return invalid(spec, "output is null");
  if (in && out && spec.input.dtype != spec.output.dtype)
    return invalid(spec, "input and output differ in type");
  return spec.uneven() ? check_blocks(spec, self, size) : check_sizes(spec, self, size);
}

Status check_lossy(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  const bool lossy = options.delivery.kind != Delivery::Kind::exact;
  const bool lossy_spread =
      spec.kind == OperationKind::all_reduce && options.spread != Delivery::Kind::exact;
  if (!lossy && !lossy_spread) return Status();
  if (spec.kind == OperationKind::replica_broadcast || spec.lenient) return Status();
  if (!has_reduce_half(spec.kind)) {
    return Status::error(
        StatusCode::kUnsupported,
        "%s: delivery %s has no meaning here: every element has one source, so a lost one cannot "
        "be "
        "estimated; use exact (parameters may be spread lossily by leeway::Replica)",
        to_string(spec.kind), to_string(options.delivery.kind).data());
  }
  if (!is_floating(spec.input.dtype) || !is_sum(options.op)) {
    return Status::error(StatusCode::kUnsupported,
                         "%s: delivery %s is defined for sum, avg and premul_sum of floating-point "
                         "tensors only (got %s of %s); use exact",
                         to_string(spec.kind), to_string(options.delivery.kind).data(),
                         to_string(options.op).data(), to_string(spec.input.dtype).data());
  }
  if (lossy_spread && !lossy) return invalid(spec, "a lossy spread needs a lossy delivery");
  return Status();
}

// Checks options that are defined only for sums of float32.
Status check_reduction_only(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  const bool of_floats = has_reduce_half(spec.kind) && spec.input.dtype == DataType::f32;
  const bool of_sixteen_bits =
      spec.input.dtype == DataType::f16 || spec.input.dtype == DataType::bf16;
  if (of_sixteen_bits && (has_automatic_codec(options) || !options.residual.empty())) {
    return Status::error(
        StatusCode::kUnsupported,
        "%s: codec automatic and a residual (error feedback) need float32 tensors, "
        "not %s",
        to_string(spec.kind), to_string(spec.input.dtype).data());
  }
  if (has_automatic_codec(options) && !(of_floats && is_sum(options.op))) {
    return invalid(spec,
                   "codec automatic needs a reduction of float32 with op = sum, avg or premul_sum");
  }
  if (options.residual.empty()) return Status();
  if (!of_floats || !is_sum(options.op)) {
    return invalid(spec,
                   "a residual (error feedback) needs a reduction of float32 with op = sum, avg or "
                   "premul_sum");
  }
  if (options.residual.size() != spec.input.count)
    return invalid(spec, "residual must have the input's size");
  return Status();
}

Status check_owner_weights(const OperationSpec& spec, int size) {
  const auto weights = spec.options.owner_weights;
  if (!weights.empty() && weights.size() != static_cast<std::size_t>(size)) {
    return invalid(spec, "owner_weights must be one for each rank");
  }
  // Ranks must decide alike whether a call is cut into parts. The decision follows from
  // confirm_use, which all ranks set. owner_weights may be set on some ranks only, so they need
  // confirm_use.
  if (!weights.empty() && !spec.options.confirm_use && spec.parts == 0)
    return invalid(spec, "owner_weights need confirm_use, which all ranks set");
  if (!std::all_of(weights.begin(), weights.end(), is_weight)) {
    return invalid(spec, "owner_weights must be 0 or lie in 2^-64 .. 2^64");
  }
  return Status();
}

Status check_reduce_op(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  const bool reduces = has_reduce_half(spec.kind);
  if (options.op != ReduceOp::premul_sum || !reduces) {
    if (!(options.factor == Scalar(1)))
      return invalid(spec, "a factor other than 1 needs a reduction with op = premul_sum");
  }
  if (!reduces) return Status();
  const DataType dtype = spec.input.dtype;
  if (!codec::is_defined(options.op, dtype)) {
    return Status::error(StatusCode::kUnsupported, "%s: %s is not defined for tensors of %s",
                         to_string(spec.kind), to_string(options.op).data(),
                         to_string(dtype).data());
  }
  if (options.op == ReduceOp::premul_sum && !codec::is_factor(options.factor, dtype)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: factor is not a value of %s, the tensor's type", to_string(spec.kind),
                         to_string(dtype).data());
  }
  return Status();
}

Status check_options(const OperationSpec& spec, int size) {
  const CollectiveOptions& options = spec.options;
  const DataType dtype = dtype_of(spec);
  if (options.delivery.deadline.count() <= 0) return invalid(spec, "deadline must be positive");
  if (!(options.delivery.loss_max >= 0.0 && options.delivery.loss_max <= 1.0)) {
    return invalid(spec, "loss_max must lie in 0 .. 1");
  }
  if (!is_weight(options.weight)) return invalid(spec, "weight must be 0 or lie in 2^-64 .. 2^64");
  if (Status status = check_owner_weights(spec, size); !status.ok()) return status;
  if (Status status = check_reduce_op(spec); !status.ok()) return status;
  const bool weighted = options.weight != 1.0 || !options.owner_weights.empty();
  if (weighted && (options.op != ReduceOp::avg || !has_reduce_half(spec.kind))) {
    return invalid(spec, "a weight other than 1 needs op = avg");
  }
  if (weighted && (!is_floating(dtype) || dtype == DataType::f64))
    return invalid(spec, "weights need float32, float16 or bfloat16 tensors");
  const CodecOptions spread_codec = options.spread_codec.value_or(options.codec);
  for (const CodecOptions& codec : {options.codec, spread_codec}) {
    if (const Status status = leeway::validate(codec); !status.ok())
      return invalid(spec, status.c_str());
  }
  const bool encoded = options.codec.codec != Codec::native || spread_codec.codec != Codec::native;
  if (encoded && !codec::is_encodable(dtype))
    return invalid(spec, "codecs other than native need float32, float16 or bfloat16 tensors");
  if (encoded && has_reduce_half(spec.kind) && !is_sum(options.op))
    return invalid(spec, "codecs other than native need op = sum or avg, or premul_sum");
  if (options.estimator == Estimator::augmented && !options.control_variate.empty() &&
      options.control_variate.size() != spec.input.count) {
    return invalid(spec, "control_variate must have the tensor's size");
  }
  if (options.estimator == Estimator::augmented && !options.control_variate.empty() &&
      dtype != DataType::f32) {
    return Status::error(StatusCode::kUnsupported, "%s: a control_variate needs float32 tensors",
                         to_string(spec.kind));
  }
  if (Status status = check_reduction_only(spec); !status.ok()) return status;
  return check_lossy(spec);
}

// Checks that enumerators are in range: they may come from a file, and they index tables.
Status check_enumerators(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  const auto check = [&](const char* what, auto value, int count) {
    if (static_cast<int>(value) < count) return Status();
    return Status::error(StatusCode::kInvalidArgument, "%s: %s %d does not exist",
                         to_string(spec.kind), what, static_cast<int>(value));
  };
  Status status = check("data type", spec.input.dtype, kDataTypeCount);
  if (status.ok()) status = check("data type", spec.output.dtype, kDataTypeCount);
  if (status.ok()) status = check("op", options.op, kReduceOpCount);
  if (status.ok()) status = check("estimator", options.estimator, kEstimatorCount);
  if (status.ok()) status = check("delivery", options.delivery.kind, Delivery::kKinds);
  if (status.ok()) status = check("spread", options.spread, Delivery::kKinds);
  if (status.ok()) status = check("codec", options.codec.codec, kCodecCount);
  if (status.ok() && options.spread_codec)
    status = check("spread_codec", options.spread_codec->codec, kCodecCount);
  for (std::size_t i = 0; spec.messages != nullptr && status.ok() && i < spec.messages->size(); ++i)
    status = check("kind of message", (*spec.messages)[i].kind, leeway::Message::kKinds);
  return status;
}

// Checks that a payload source and sink may replace the call's tensors.
Status check_elsewhere(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  if (options.source == nullptr && options.sink == nullptr) return Status();
  if (options.source == nullptr || options.sink == nullptr)
    return invalid(spec, "a payload source needs a payload sink, and the other way round");
  const bool moves_one_block = spec.kind == OperationKind::all_gather ||
                               spec.kind == OperationKind::broadcast ||
                               spec.kind == OperationKind::gather;
  const bool reduces = has_reduce_half(spec.kind) && spec.kind != OperationKind::replica_reduce;
  if (!moves_one_block && !reduces) {
    return Status::error(StatusCode::kUnsupported, "%s: payload sources and sinks are not for it",
                         to_string(spec.kind));
  }
  if (has_automatic_codec(options) || !options.residual.empty() ||
      !options.control_variate.empty()) {
    return Status::error(StatusCode::kUnsupported,
                         "%s with a payload source: codec automatic, a residual and a control "
                         "variate need values",
                         to_string(spec.kind));
  }
  return Status();
}

// Refuses options that read or write values if the call has no contents.
Status check_without_contents(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  if (spec.contents) return Status();
  if (has_automatic_codec(options) || !options.residual.empty() ||
      !options.control_variate.empty()) {
    return Status::error(StatusCode::kUnsupported,
                         "%s without contents: codec automatic, a residual and a control variate "
                         "need values",
                         to_string(spec.kind));
  }
  return Status();
}

}  // namespace

bool point_to_point(OperationKind kind) {
  return kind == OperationKind::send || kind == OperationKind::recv;
}

bool is_collective(OperationKind kind) {
  return !point_to_point(kind) && kind != OperationKind::exchange;
}

bool has_reduce_half(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce_scatter ||
         kind == OperationKind::reduce || kind == OperationKind::replica_reduce;
}

bool has_spread_half(OperationKind kind) {
  return kind == OperationKind::all_reduce || (!has_reduce_half(kind) && is_collective(kind));
}

// Returns true if no rank has elements. An uneven all_to_all is never empty, since other ranks may
// have elements.
bool is_empty(const OperationSpec& spec) {
  const bool in_pairs = spec.kind == OperationKind::all_to_all && spec.uneven();
  return is_collective(spec.kind) && spec.kind != OperationKind::barrier && !in_pairs &&
         agreed_count(spec) == 0;
}

bool is_sum(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum;
}

bool has_automatic_codec(const CollectiveOptions& options) {
  return options.codec.codec == Codec::automatic ||
         (options.spread_codec && options.spread_codec->codec == Codec::automatic);
}

DataType dtype_of(const OperationSpec& spec) {
  return goes_by_output(spec.kind) ? spec.output.dtype : spec.input.dtype;
}

std::size_t agreed_count(const OperationSpec& spec) {
  if (spec.uneven()) {
    if (spec.kind == OperationKind::all_to_all) return 0;
    return (spec.kind == OperationKind::all_gather ? spec.output_blocks : spec.input_blocks)
        .total();
  }
  return goes_by_output(spec.kind) ? spec.output.count : spec.input.count;
}

Status validate(const OperationSpec& spec, Rank self, int size) {
  const bool any_peer = spec.kind == OperationKind::recv && spec.peer == kAnyRank;
  if ((rooted(spec.kind) || point_to_point(spec.kind)) && spec.peer >= size && !any_peer) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: rank %u does not exist; the communicator has ranks 0 .. %d",
                         to_string(spec.kind), spec.peer, size - 1);
  }
  if (point_to_point(spec.kind) && spec.peer == self && !spec.grouped)
    return invalid(spec, "a rank sends itself something only within one exchange()");
  if (spec.options.tag != 0 && !point_to_point(spec.kind))
    return invalid(spec, "tags are for messages");
  if (Status status = check_enumerators(spec); !status.ok()) return status;
  if (Status status = check_elsewhere(spec); !status.ok()) return status;
  if (Status status = check_buffers(spec, self, size); !status.ok()) return status;
  if (Status status = check_without_contents(spec); !status.ok()) return status;
  if (Status status = check_options(spec, size); !status.ok()) return status;
  return check_overlap(spec, self, size);
}

}  // namespace leeway::collective
