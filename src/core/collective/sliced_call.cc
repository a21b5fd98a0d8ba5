#include "collective/sliced_call.h"

#include <algorithm>
#include <cmath>

#include "base/contracts.h"
#include "estimate/noise.h"

namespace leeway::collective {
namespace {

// Slices begin at a multiple of this many elements. It is a multiple of every codec's block length,
// and keeps the slices of an aligned tensor aligned to cache lines.
constexpr std::size_t kSliceGrain = 1024;

// Returns how many elements are cut: those of the tensor, or of one rank's block.
std::size_t elements_of(const OperationSpec& spec) {
  return spec.kind == OperationKind::all_gather ? spec.input.count : spec.output.count;
}

template <typename T>
std::span<T> part_of(std::span<T> whole, std::size_t offset, std::size_t count) {
  return whole.empty() ? whole : whole.subspan(offset, count);
}

void add_peer(const PeerReport& from, PeerReport& row) {
  add_counts(from, row);
  row.missed &= from.missed;
}

// Returns the mean of the slices' noise, weighted by their elements. If a slice has losses but no
// estimate, the result is not measured: a mean of the other slices would hide the slice that lost
// most.
NoiseReport mean_noise(std::span<const Request* const> parts, std::span<const double> shares) {
  NoiseReport mean{.gain = 0};
  double whole = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const NoiseReport& noise = parts[i]->report.noise;
    if (std::isnan(parts[i]->report.variance_estimate)) return {};
    if (!noise.measured) continue;  // this rank had no units of work
    whole += shares[i];
    mean.gradient_mean_square += shares[i] * noise.gradient_mean_square;
    mean.dispersion += shares[i] * noise.dispersion;
    mean.quantisation_variance += shares[i] * noise.quantisation_variance;
    mean.loss_variance += shares[i] * noise.loss_variance;
    mean.loss += shares[i] * noise.loss;
    mean.gain += shares[i] * noise.gain;
  }
  if (whole == 0) return {};
  for (double* const value :
       {&mean.gradient_mean_square, &mean.dispersion, &mean.quantisation_variance,
        &mean.loss_variance, &mean.loss, &mean.gain}) {
    *value /= whole;
  }
  mean.measured = true;
  mean.ratio = estimate::NoiseEstimate{.gradient_mean_square = mean.gradient_mean_square,
                                       .dispersion = mean.dispersion,
                                       .quantisation_variance = mean.quantisation_variance,
                                       .loss_variance = mean.loss_variance,
                                       .gain = mean.gain}
                   .ratio();
  return mean;
}

}  // namespace

std::size_t SlicedCall::slices(const OperationSpec& spec, int size, std::size_t lanes,
                               std::size_t slice_bytes) {
  if (spec.kind != OperationKind::all_reduce && spec.kind != OperationKind::all_gather &&
      spec.kind != OperationKind::broadcast) {
    return 1;
  }
  if (size < 2 || spec.uneven() || spec.elsewhere() || spec.options.confirm_use) return 1;
  if (has_automatic_codec(spec.options)) return 1;
  const std::size_t most =
      std::min(lanes, std::max(spec.input.bytes(), spec.output.bytes()) / slice_bytes);
  return std::max<std::size_t>(1, std::min(most, elements_of(spec) / kSliceGrain));
}

SlicedCall::SlicedCall(const OperationSpec& spec, int size, std::size_t slices) {
  LEEWAY_ASSERT(slices >= 2);
  const std::size_t count = elements_of(spec);
  const std::size_t whole = count / slices / kSliceGrain * kSliceGrain;
  for (std::size_t i = 0; i < slices; ++i) {
    const std::size_t offset = i * whole;
    const std::size_t length = i + 1 == slices ? count - offset : whole;
    add_slice(spec, offset, length, size, static_cast<std::uint8_t>(slices));
    shares_.push_back(static_cast<double>(length) / static_cast<double>(count));
  }
}

void SlicedCall::add_slice(const OperationSpec& spec, std::size_t offset, std::size_t count,
                           int size, std::uint8_t parts) {
  OperationSpec slice = spec;
  slice.parts = parts;
  slice.input = {spec.contents ? element_at(spec.input.data, offset, spec.input.dtype) : nullptr,
                 count, spec.input.dtype};
  if (spec.kind == OperationKind::all_gather) {
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<std::size_t> places;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      places.push_back(rank * spec.input.count + offset);
    slice.output_blocks = BlockList(Blocks(std::vector<std::size_t>(ranks, count), places));
  } else {
    slice.output = {
        spec.contents ? element_at(spec.output.data, offset, spec.output.dtype) : nullptr, count,
        spec.output.dtype};
  }
  slice.options.residual = part_of(spec.options.residual, offset, count);
  slice.options.control_variate = part_of(spec.options.control_variate, offset, count);
  slices_.push_back(std::move(slice));
}

void SlicedCall::finish(std::span<const Request* const> parts, Request& outcome,
                        Instant now) const {
  LEEWAY_ASSERT(parts.size() == slices_.size());
  CollectiveReport& all = outcome.report;
  all = parts.front()->report;
  all.lanes = static_cast<std::uint32_t>(parts.size());
  all.noise = mean_noise(parts, shares_);
  all.variance_estimate *= shares_.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const CollectiveReport& part = parts[i]->report;
    for (std::size_t row = 0; row < part.peers.size(); ++row)
      add_peer(part.peers[row], all.peers[row]);
    add_contributors(part.contributors, all.contributors);
    all.owners = std::max(all.owners, part.owners);
    all.bytes_sent += part.bytes_sent;
    all.times.gate = std::max(all.times.gate, part.times.gate);
    all.times.reduce = std::max(all.times.reduce, part.times.reduce);
    all.deadline_cut |= part.deadline_cut;
    all.complete &= part.complete;
    all.elements_missing += part.elements_missing;
    all.elements_untouched += part.elements_untouched;
    all.non_finite += part.non_finite;
    all.contributions_fetched += part.contributions_fetched;
    all.contributions_missing += part.contributions_missing;
    all.variance_estimate += shares_[i] * part.variance_estimate;
  }
  all.times.total = now - outcome.submitted;
  all.times.spread = all.times.total - all.times.reduce;
  set_losses(all);
  outcome.finish(Status(), now);
}

}  // namespace leeway::collective
