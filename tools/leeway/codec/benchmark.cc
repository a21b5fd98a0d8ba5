#include "codec/benchmark.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "codec/error_meter.h"
#include "codec/kernels.h"
#include "codec/sampler.h"
#include "codec/standard_data.h"

namespace leeway::tools::codecs {
namespace {

constexpr std::size_t kRounds = 9;
constexpr double kPacketGigabytes = kPacketElements * sizeof(float) / 1e9;
constexpr float kAccumulateScale = 0.25f;  // exact, so that sums stay finite however many are added

// The buffers of one size. All rows of that size share them.
struct Buffers {
  explicit Buffers(std::size_t bytes)
      : packets(std::max<std::size_t>(1, bytes / (kPacketElements * sizeof(float)))),
        in(packets * kPacketElements),
        out(packets * kPacketElements),
        payload(packets * kPacketElements * sizeof(float) + packets * sizeof(float)) {
    const auto tile = normal_values(64 * kPacketElements, 1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = tile[i % tile.size()];
  }

  std::span<const float> in_packet(std::size_t p) const {
    return std::span(in).subspan(p * kPacketElements, kPacketElements);
  }
  std::span<float> out_packet(std::size_t p) {
    return std::span(out).subspan(p * kPacketElements, kPacketElements);
  }
  MutableByteSpan payload_packet(std::size_t p, std::size_t bytes) {
    return std::span(payload).subspan(p * bytes, bytes);
  }

  std::size_t packets;
  std::vector<float> in;
  std::vector<float> out;
  std::vector<std::byte> payload;
};

// ---- work to be timed, on packets [begin, end) ----

Sampler::Work copy_work(Buffers& b) {
  return [&b](std::size_t begin, std::size_t end) {
    const std::size_t first = begin * kPacketElements;
    std::memcpy(b.out.data() + first, b.in.data() + first,
                (end - begin) * kPacketElements * sizeof(float));
  };
}

// Adds float32 by the library's kernel on the row's instruction set. This is the work of a
// reduction without a codec.
Sampler::Work add_work(Buffers& b) {
  const codec::Format format = codec::format_of(Codec::fp32, DataType::f32);
  return [&b, format](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      codec::accumulate(format, std::as_bytes(b.in_packet(p)), 1.0f, b.out_packet(p));
    }
  };
}

Sampler::Work encode_work(Buffers& b, const codec::Format& format, const Kernels& kernels) {
  const std::size_t bytes = format.encoded_bytes(kPacketElements);
  return [&b, format, kernels, bytes](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const float* ahead = p + 1 < b.packets ? b.in_packet(p + 1).data() : nullptr;
      const codec::Place place{.seed = 1, .first_element = p * kPacketElements, .ahead = ahead};
      kernels.encode(format, b.in_packet(p), place, b.payload_packet(p, bytes));
    }
  };
}

Sampler::Work decode_work(Buffers& b, const codec::Format& format, const Kernels& kernels) {
  const std::size_t bytes = format.encoded_bytes(kPacketElements);
  return [&b, format, kernels, bytes](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const codec::Place place{.seed = 1, .first_element = p * kPacketElements};
      kernels.decode(format, b.payload_packet(p, bytes), place, b.out_packet(p));
    }
  };
}

Sampler::Work accumulate_work(Buffers& b, const codec::Format& format, const Kernels& kernels) {
  const std::size_t bytes = format.encoded_bytes(kPacketElements);
  return [&b, format, kernels, bytes](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      kernels.accumulate(format, b.payload_packet(p, bytes), kAccumulateScale, b.out_packet(p));
    }
  };
}

// ---- one row ----

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Times the conversions and the references (memcpy and y += x) in turns, round after round. So
// other load on the machine disturbs all of them alike.
class Contest {
 public:
  Contest(Buffers& buffers, std::chrono::microseconds sample_time)
      : sampler_(buffers.packets, sample_time) {
    enter(copy_work(buffers));
    enter(add_work(buffers));
  }

  std::size_t enter(Sampler::Work work) {
    const std::size_t count = sampler_.packets_for(work);
    entrants_.push_back({std::move(work), count, {}});
    return entrants_.size() - 1;
  }

  void run() {
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (Entrant& e : entrants_) e.rates.push_back(sampler_.rate(e.work, e.count));
    }
  }

  double copy() const { return median(entrants_[0].rates) * kPacketGigabytes; }
  double add() const { return median(entrants_[1].rates) * kPacketGigabytes; }
  Speed speed(std::size_t entrant) const {
    return {median(entrants_[entrant].rates) * kPacketGigabytes, ratio(entrant, 0),
            ratio(entrant, 1)};
  }

 private:
  struct Entrant {
    Sampler::Work work;
    std::size_t count;
    std::vector<double> rates;  // packets/s of each round
  };

  double ratio(std::size_t entrant, std::size_t reference) const {
    std::vector<double> ratios(entrants_[entrant].rates);
    for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= entrants_[reference].rates[i];
    return median(std::move(ratios));
  }

  Sampler sampler_;
  std::vector<Entrant> entrants_;
};

// Encodes all packets, so that decoders have valid input. One kind of rounding is enough, because
// nearest and stochastic rounding give payloads of the same layout.
void fill_payload(Buffers& buffers, const codec::Format& format) {
  encode_work(buffers, format, library_kernels())(0, buffers.packets);
  std::fill(buffers.out.begin(), buffers.out.end(), 0.0f);
}

std::optional<Kernels> kernels_for(const BenchRow& row,
                                   const std::optional<codec::Format>& format) {
  if (!format) return std::nullopt;
  return row.target == kDefinition ? defining_kernels(*format) : library_kernels();
}

void measure_row(const CodecOptions& options, std::chrono::microseconds sample_time,
                 Buffers& buffers, BenchRow& row) {
  const auto nearest = format_with(options, Rounding::nearest);
  const auto stochastic = format_with(options, Rounding::stochastic);
  const auto& either = nearest ? nearest : stochastic;
  fill_payload(buffers, *either);

  Contest contest(buffers, sample_time);
  std::vector<std::pair<std::optional<Speed>*, std::size_t>> results;
  if (const auto kernels = kernels_for(row, nearest)) {
    results.emplace_back(&row.encode_nearest,
                         contest.enter(encode_work(buffers, *nearest, *kernels)));
  }
  if (const auto kernels = kernels_for(row, stochastic)) {
    results.emplace_back(&row.encode_stochastic,
                         contest.enter(encode_work(buffers, *stochastic, *kernels)));
  }
  if (const auto kernels = kernels_for(row, either)) {
    results.emplace_back(&row.decode, contest.enter(decode_work(buffers, *either, *kernels)));
    results.emplace_back(&row.accumulate,
                         contest.enter(accumulate_work(buffers, *either, *kernels)));
  }
  contest.run();
  for (const auto& [speed, entrant] : results) *speed = contest.speed(entrant);
  row.copy = contest.copy();
  row.add = contest.add();
}

bool has_definition(const CodecOptions& options) {
  const auto nearest = format_with(options, Rounding::nearest);
  const auto stochastic = format_with(options, Rounding::stochastic);
  return (nearest && defining_kernels(*nearest)) || (stochastic && defining_kernels(*stochastic));
}

struct Plan {
  CodecOptions options;
  std::optional<codec::InstructionSet> set;  // without one, the formats' definition is timed
  std::size_t size = 0;                      // index in settings.sizes
};

std::vector<Plan> plan_of(const BenchSettings& settings) {
  auto sets = codec::instruction_sets();
  if (!settings.all_targets) sets.resize(1);
  std::vector<Plan> plans;
  for (const CodecOptions& options : settings.codecs) {
    for (const auto& set : sets) {
      for (std::size_t s = 0; s < settings.sizes.size(); ++s) plans.push_back({options, set, s});
    }
    if (has_definition(options)) plans.push_back({options, std::nullopt, 0});
  }
  return plans;
}

}  // namespace

std::vector<BenchRow> measure_bench(const BenchSettings& settings, const BenchProgress& progress) {
  std::vector<std::unique_ptr<Buffers>> buffers;
  for (const std::size_t bytes : settings.sizes)
    buffers.push_back(std::make_unique<Buffers>(bytes));
  const auto plans = plan_of(settings);
  std::vector<BenchRow> rows;
  for (const Plan& plan : plans) {
    BenchRow row;
    row.codec = to_string(plan.options);
    row.target = plan.set ? plan.set->name : kDefinition;
    row.bytes = settings.sizes[plan.size];
    progress(rows.size(), plans.size(), row);
    std::optional<codec::RunOn> run_on;
    if (plan.set) run_on.emplace(*plan.set);
    measure_row(plan.options, settings.sample_time, *buffers[plan.size], row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace leeway::tools::codecs
