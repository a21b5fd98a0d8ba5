#include "checker/site_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "base/limits.h"
#include "codec/codec.h"
#include "collective/operation_spec.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

// Difference beyond which rounding is no explanation, relative to the largest mean magnitude of the
// contributions.
constexpr double kFarFromMean = 1e-4;

// Maximum number of legs that a call has in addition to its legs within single sites.
constexpr std::uint32_t kFurtherLegs = 4;

std::string where_in(Instant now, std::uint32_t rank, const Call& call) {
  return format_text("round %u (all of %s), rank %u, at %.6f ms", call.round, to_string(call.kind),
                     rank, static_cast<double>(now.ns) / 1e6);
}

std::span<const float> result_of(const OperationSpec& spec) {
  return {static_cast<const float*>(spec.output.data), spec.output.count};
}

bool is_exact(const OperationSpec& spec) {
  return spec.options.delivery.kind == Delivery::Kind::exact;
}

bool rounds_nothing(const OperationSpec& spec) {
  const auto is_identity = [](const CodecOptions& codec) {
    return codec.codec != Codec::automatic &&
           codec::format_of(codec, DataType::f32, codec::Purpose::copy).identity();
  };
  const CodecOptions& codec = spec.options.codec;
  return is_identity(codec) && is_identity(spec.options.spread_codec.value_or(codec));
}

}  // namespace

SiteCheck::SiteCheck(Checks checks, std::uint32_t ranks, std::uint32_t sites)
    : checks_(checks),
      sites_(sites),
      deadlines_(checks.deadline, ranks, (sites + kFurtherLegs) * Duration(limits::kTickNs)),
      dead_(ranks),
      next_(ranks) {}

void SiteCheck::on_submit(Instant now, std::uint32_t rank, const Call& call) {
  const OperationSpec& spec = *call.spec;
  deadlines_.on_submit(now, rank, spec.options.delivery.deadline);
  next_[rank] = call.round;
  Round& round = rounds_[call.round];
  round.brought.resize(dead_.size());
  round.weights.resize(dead_.size());
  const auto* const values = static_cast<const float*>(spec.input.data);
  round.brought[rank].assign(values, values + spec.input.count);
  round.weights[rank] = spec.options.weight;
}

void SiteCheck::on_done(Instant now, std::uint32_t rank, const Call& call,
                        const CallResult& result) {
  const OperationSpec& spec = *call.spec;
  const CollectiveReport& report = *result.report;
  Round& round = rounds_[call.round];
  deadlines_.on_done(now, rank);
  const bool whole = report.elements_missing == 0 && result.arrived == result.expected;
  const bool good =
      !result.status.ok() ||
      (report.sites == sites_ && (sites_ > 0 || report.lanes > 1) &&
       (!report.complete || report.elements_missing == 0) && (whole || !is_exact(spec)));
  checks_.report.expect(good, [&] {
    return where_in(now, rank, call) +
           format_text(
               ": %u sites, %u lanes, complete: %d, %llu elements missing, %llu of %llu packets",
               report.sites, report.lanes, report.complete,
               static_cast<unsigned long long>(report.elements_missing),
               static_cast<unsigned long long>(result.arrived),
               static_cast<unsigned long long>(result.expected));
  });
  if (result.status.ok() && report.complete) {
    if (is_exact(spec)) {
      checks_.sum.expect(has_all(round), [&] {
        return where_in(now, rank, call) + ": is exact, and not all ranks have brought something";
      });
    }
    const bool exact = is_exact(spec) && has_all(round) && rounds_nothing(spec);
    if (spec.kind != OperationKind::reduce_scatter) check_agreement(now, rank, call, round);
    if (exact && spec.kind == OperationKind::all_gather) check_blocks(now, rank, call, round);
    if (exact && spec.kind != OperationKind::all_gather) check_sum(now, rank, call, round);
  }
  next_[rank] = call.round + 1;
  drop_finished();
}

bool SiteCheck::has_all(const Round& round) const {
  return std::none_of(round.brought.begin(), round.brought.end(),
                      [](const std::vector<float>& values) { return values.empty(); });
}

void SiteCheck::average(Round& round) const {
  double weight = 0.0;
  for (const double one : round.weights) weight += one;
  round.mean.assign(round.brought[0].size(), 0.0);
  for (std::size_t i = 0; i < round.mean.size(); ++i) {
    double magnitude = 0.0;
    for (const std::vector<float>& values : round.brought) {
      round.mean[i] += values[i];
      magnitude += std::abs(values[i]);
    }
    if (weight > 0.0) round.mean[i] /= weight;
    round.largest = std::max(round.largest, weight > 0.0 ? magnitude / weight : magnitude);
  }
}

void SiteCheck::check_sum(Instant now, std::uint32_t rank, const Call& call, Round& round) {
  if (round.mean.empty()) average(round);
  const auto result = result_of(*call.spec);
  const std::size_t from =
      call.spec->kind == OperationKind::reduce_scatter ? rank * result.size() : 0;
  std::size_t at = 0;
  while (at < result.size() &&
         std::abs(result[at] - round.mean[from + at]) <= kFarFromMean * round.largest) {
    ++at;
  }
  checks_.sum.expect(at == result.size(), [&] {
    return where_in(now, rank, call) + format_text(": element %zu is %.9g, and the average %.9g",
                                                   at, static_cast<double>(result[at]),
                                                   round.mean[from + at]);
  });
}

void SiteCheck::check_blocks(Instant now, std::uint32_t rank, const Call& call,
                             const Round& round) {
  const auto result = result_of(*call.spec);
  for (std::size_t from = 0; from < round.brought.size(); ++from) {
    const std::vector<float>& brought = round.brought[from];
    const auto block = result.subspan(from * brought.size(), brought.size());
    checks_.agreement.expect(
        std::memcmp(block.data(), brought.data(), block.size_bytes()) == 0, [&] {
          return where_in(now, rank, call) +
                 format_text(": the block of rank %zu is not what it brought", from);
        });
  }
}

void SiteCheck::check_agreement(Instant now, std::uint32_t rank, const Call& call, Round& round) {
  const std::uint32_t digest = crc32c(std::as_bytes(result_of(*call.spec)));
  if (!round.digest) {
    round.digest = digest;
    round.digest_of = rank;
  }
  checks_.agreement.expect(*round.digest == digest, [&] {
    return where_in(now, rank, call) +
           format_text(": the result is agreed, and differs from that of rank %u", round.digest_of);
  });
}

void SiteCheck::on_death(std::uint32_t rank) {
  dead_[rank] = true;
  deadlines_.on_kill(rank);
  drop_finished();
}

// Drops the rounds that all live ranks have finished.
void SiteCheck::drop_finished() {
  std::uint32_t least = UINT32_MAX;
  for (std::size_t rank = 0; rank < next_.size(); ++rank) {
    if (!dead_[rank]) least = std::min(least, next_[rank]);
  }
  rounds_.erase(rounds_.begin(), rounds_.lower_bound(least));
}

}  // namespace leeway::sim
