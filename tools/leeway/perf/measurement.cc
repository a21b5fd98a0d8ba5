#include "perf/measurement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "estimate/noise.h"
#include "perf/call.h"
#include "perf/exactness.h"
#include "perf/pattern.h"
#include "perf/statistics.h"

namespace leeway::tools::perf {
namespace {

constexpr std::byte kPoison{0xA5};

// Counts of one rank. They are doubles, so that a single exact all_gather can send all of them to
// all ranks.
struct Facts {
  double packets_expected = 0;
  double packets_missed_first = 0;
  double packets_missing = 0;
  double packets_late = 0;
  double checked_missing = 0;  // packets of the calls whose results are compared
  double wrong = 0;
  double error_squares = 0;
  double truth_squares = 0;
  double noise_reports = 0;  // number of reports that the next two sums are over
  double gradient_mean_squares = 0;
  double noise_variances = 0;
  Spending spending;

  Facts& operator+=(const Facts& other) {
    packets_expected += other.packets_expected;
    packets_missed_first += other.packets_missed_first;
    packets_missing += other.packets_missing;
    packets_late += other.packets_late;
    checked_missing += other.checked_missing;
    wrong += other.wrong;
    error_squares += other.error_squares;
    truth_squares += other.truth_squares;
    noise_reports += other.noise_reports;
    gradient_mean_squares += other.gradient_mean_squares;
    noise_variances += other.noise_variances;
    spending += other.spending;
    return *this;
  }
  void add(const CollectiveReport& report) {
    for (const PeerReport& peer : report.peers) {
      packets_expected += static_cast<double>(peer.expected);
      packets_missed_first += static_cast<double>(peer.expected - (peer.arrived - peer.repaired));
      packets_missing += static_cast<double>(peer.expected - peer.arrived);
      packets_late += static_cast<double>(peer.late);
    }
    add(report.noise);
  }
  void add(const NoiseReport& noise) {
    const double variance = noise.quantisation_variance + noise.loss_variance;
    if (!noise.measured || !std::isfinite(noise.gradient_mean_square + variance)) return;
    noise_reports += 1;
    gradient_mean_squares += noise.gradient_mean_square;
    noise_variances += variance;
  }
  void add(const Comparison& comparison) {
    wrong += static_cast<double>(comparison.wrong);
    error_squares += comparison.error_squares;
    truth_squares += comparison.truth_squares;
  }
};
using FactsAsArray = std::array<double, sizeof(Facts) / sizeof(double)>;

// Results of one half of a row (out of place or in place), over all ranks.
struct Outcome {
  std::vector<double> times_us;  // time of the slowest rank in each iteration
  Facts facts;                   // summed over ranks
  CodecOptions codec;            // codec of the last iteration, the same on all ranks
};

class Bench {
 public:
  // `input` and `output` are empty if tensors are in ordinary memory. Otherwise all ranks have
  // allocated them together.
  Bench(Communicator& communicator, const Settings& settings, const Layout& buffers,
        Allocation input, Allocation output);

  Result<Outcome> run(bool in_place);

 private:
  static TensorView view(MutableByteSpan buffer, std::size_t count, DataType type) {
    return {buffer.data(), count, type};
  }
  static MutableByteSpan choose(const Allocation& allocated, std::vector<std::byte>& ordinary,
                                std::size_t bytes) {
    if (allocated.size() > 0) return {allocated.data(), bytes};
    ordinary.resize(bytes);
    return ordinary;
  }
  // Fills the buffers for a call and returns views of its input and output. With `poison`, fills
  // the output with values that no result has.
  std::pair<ConstTensorView, TensorView> prepare(bool in_place, bool poison);
  Status check(bool in_place, Facts& facts);
  Status iterate(bool in_place, double& time_us, Facts& facts);
  Status call_once(ConstTensorView input, TensorView output, Facts& facts);
  Result<Outcome> exchange(const std::vector<double>& times_us, const Facts& facts);

  Communicator& communicator_;
  const Settings& settings_;
  CollectiveOptions options_;  // the settings' options, with this rank's factor
  Layout layout_;
  Allocation allocated_input_;
  Allocation allocated_output_;
  std::vector<std::byte> ordinary_input_;
  std::vector<std::byte> ordinary_output_;
  MutableByteSpan input_;
  MutableByteSpan output_;
  std::vector<MemoryRegistration> registrations_;
  std::vector<std::byte> expected_;
  bool has_expected_ = false;  // the operation writes this rank's output
  CodecOptions codec_used_;
};

Bench::Bench(Communicator& communicator, const Settings& settings, const Layout& buffers,
             Allocation input, Allocation output)
    : communicator_(communicator),
      settings_(settings),
      options_(settings.collective),
      layout_(buffers),
      allocated_input_(std::move(input)),
      allocated_output_(std::move(output)),
      input_(
          choose(allocated_input_, ordinary_input_, buffers.input_count * size_of(settings.dtype))),
      output_(choose(allocated_output_, ordinary_output_,
                     buffers.output_count * size_of(settings.dtype))),
      expected_(output_.size()) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  if (options_.op == ReduceOp::premul_sum) options_.factor = Pattern::factor_of(rank);
  const Pattern pattern(options_, settings.dtype, size);
  fill_input(pattern, rank, view(input_, layout_.input_count, settings.dtype));
  has_expected_ =
      fill_expected(pattern, settings.operation, rank, size, settings.root, layout_.count,
                    view(expected_, layout_.output_count, settings.dtype));
  for (const ByteSpan memory : {ByteSpan(input_), ByteSpan(output_)}) {
    auto registered = communicator.register_memory(memory);
    if (registered.ok()) {
      registrations_.push_back(std::move(*registered));
    } else {
      std::fprintf(stderr, "note: rank %d copies what it sends: %s\n", rank,
                   registered.status().c_str());
    }
  }
}

std::pair<ConstTensorView, TensorView> Bench::prepare(bool in_place, bool poison) {
  const TensorView input = view(input_, layout_.input_count, settings_.dtype);
  const TensorView output = view(output_, layout_.output_count, settings_.dtype);
  if (poison) std::fill(output_.begin(), output_.end(), kPoison);
  if (!in_place) return {input, output};
  const bool is_receiver = has_root(settings_.operation) && communicator_.rank() != settings_.root;
  if (!is_receiver) std::memcpy(output_.data(), input_.data(), input_.size());
  return {output, output};
}

Status Bench::check(bool in_place, Facts& facts) {
  const auto [input, output] = prepare(in_place, /*poison=*/true);
  const auto report =
      call(communicator_, settings_.operation, input, output, settings_.root, options_);
  if (!report.ok()) return report.status();
  for (const PeerReport& peer : report->peers)
    facts.checked_missing += static_cast<double>(peer.expected - peer.arrived);
  if (has_expected_)
    facts.add(compare(output, view(expected_, layout_.output_count, settings_.dtype)));
  return Status();
}

Status Bench::iterate(bool in_place, double& time_us, Facts& facts) {
  const auto [input, output] = prepare(in_place, /*poison=*/false);
  if (const auto met = communicator_.barrier(); !met.ok()) return met.status();
  const bool batch = settings_.back_to_back > 0;
  const int calls = batch ? settings_.back_to_back : 1;
  const Spending before = batch ? spent(communicator_) : Spending();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    if (const Status status = call_once(input, output, facts); !status.ok()) return status;
  }
  const auto end = std::chrono::steady_clock::now();
  if (batch) facts.spending += (spent(communicator_) - before) / calls;
  time_us = std::chrono::duration<double, std::micro>(end - start).count() / calls;
  return Status();
}

Status Bench::call_once(ConstTensorView input, TensorView output, Facts& facts) {
  const auto report =
      call(communicator_, settings_.operation, input, output, settings_.root, options_);
  if (!report.ok()) return report.status();
  facts.add(*report);
  codec_used_ = report->codec;
  return Status();
}

Result<Outcome> Bench::exchange(const std::vector<double>& times_us, const Facts& facts) {
  const auto size = static_cast<std::size_t>(communicator_.size());
  std::vector<FactsAsArray> facts_of_all(size);
  std::vector<double> times_of_all(times_us.size() * size);
  const auto own_facts = std::bit_cast<FactsAsArray>(facts);
  const TensorView all_facts(facts_of_all.data(), size * own_facts.size(), DataType::f64);
  const auto gathered_facts = communicator_.all_gather(std::span(own_facts), all_facts);
  if (!gathered_facts.ok()) return gathered_facts.status();
  const auto gathered_times =
      communicator_.all_gather(std::span(times_us), std::span(times_of_all));
  if (!gathered_times.ok()) return gathered_times.status();

  Outcome outcome;
  outcome.times_us = slowest_rank(times_of_all, times_us.size());
  for (const FactsAsArray& one : facts_of_all) outcome.facts += std::bit_cast<Facts>(one);
  outcome.codec = codec_used_;
  return outcome;
}

Result<Outcome> Bench::run(bool in_place) {
  Facts facts;
  for (int i = 0; i < settings_.checks; ++i) {
    if (const Status status = check(in_place, facts); !status.ok()) return status;
  }
  double ignored_time = 0;
  Facts ignored_facts;
  for (int i = 0; i < settings_.warmup; ++i) {
    if (const Status status = iterate(in_place, ignored_time, ignored_facts); !status.ok())
      return status;
  }
  std::vector<double> times_us(static_cast<std::size_t>(settings_.iterations));
  for (double& time_us : times_us) {
    if (const Status status = iterate(in_place, time_us, facts); !status.ok()) return status;
  }
  return exchange(times_us, facts);
}

double fraction(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Returns the ratio of gradient to noise, as a ratio of averages over operations, because the mean
// square of a single operation may be negative. Returns nullopt if there was no noise or none was
// measured.
std::optional<double> gradient_to_noise(const Facts& facts) {
  const estimate::NoiseEstimate sums{.gradient_mean_square = facts.gradient_mean_squares,
                                     .loss_variance = facts.noise_variances};
  const double ratio = sums.ratio();
  if (facts.noise_reports == 0 || std::isinf(ratio)) return std::nullopt;
  return ratio;
}

// Allocates a tensor's memory if the settings ask for that. Otherwise returns an allocation without
// memory, and ordinary memory is used.
Result<Allocation> tensor(Communicator& communicator, const Settings& settings,
                          std::size_t elements) {
  if (!settings.allocate || elements == 0) return Allocation();
  return communicator.allocate(elements * size_of(settings.dtype));
}

Side make_side(const Communicator& communicator, const Settings& settings, const Outcome& outcome,
               std::size_t bytes) {
  Side side;
  side.time_us = mean(outcome.times_us);
  side.p50_us = percentile(outcome.times_us, 0.50);
  side.p99_us = percentile(outcome.times_us, 0.99);
  side.algbw_GBps = static_cast<double>(bytes) / side.time_us / 1e3;
  side.busbw_GBps = side.algbw_GBps * bus_factor(settings.operation, communicator.size());
  const Arrival arrival{.has_faults = communicator.options().faults.any(),
                        .is_complete = outcome.facts.checked_missing == 0};
  if (is_checked(settings, arrival)) side.wrong = outcome.facts.wrong;
  side.nmse = fraction(outcome.facts.error_squares, outcome.facts.truth_squares);
  return side;
}

}  // namespace

Result<Row> measure(Communicator& communicator, const Settings& settings, std::size_t bytes) {
  const Layout buffers = layout(settings.operation, bytes, settings.dtype, communicator.size());
  auto input = tensor(communicator, settings, buffers.input_count);
  if (!input.ok()) return input.status();
  auto output = tensor(communicator, settings, buffers.output_count);
  if (!output.ok()) return output.status();
  Bench bench(communicator, settings, buffers, std::move(*input), std::move(*output));
  auto outcome = bench.run(/*in_place=*/false);
  if (!outcome.ok()) return outcome.status();

  Row row;
  row.bytes = std::max(buffers.input_count, buffers.output_count) * size_of(settings.dtype);
  row.count = buffers.count;
  row.type = to_string(settings.dtype);
  row.redop = reduces(settings.operation) ? column_name(settings.collective.op) : "none";
  row.root = has_root(settings.operation) ? settings.root : -1;
  row.out_of_place = make_side(communicator, settings, *outcome, row.bytes);
  row.transport = to_string(communicator.transport());
  row.codec_used = to_string(outcome->codec);
  Facts facts = outcome->facts;
  if (settings.back_to_back > 0) row.spending = facts.spending / settings.iterations;
  if (has_in_place(settings.operation) && settings.back_to_back == 0) {
    auto in_place = bench.run(/*in_place=*/true);
    if (!in_place.ok()) return in_place.status();
    row.in_place = make_side(communicator, settings, *in_place, row.bytes);
    facts += in_place->facts;
  }
  row.loss = fraction(facts.packets_missed_first, facts.packets_expected);
  row.loss_residual = fraction(facts.packets_missing, facts.packets_expected);
  row.late = fraction(facts.packets_late, facts.packets_expected);
  row.gradient_to_noise = gradient_to_noise(facts);
  return row;
}

}  // namespace leeway::tools::perf
