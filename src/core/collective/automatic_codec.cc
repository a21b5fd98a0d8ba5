#include "collective/automatic_codec.h"

#include <algorithm>
#include <cmath>

#include "estimate/codec_choice.h"

namespace leeway::collective {
namespace {

// Number of elements sampled from each reduction, in runs of kRun adjacent elements. Sampling an
// element costs 3 ns (lognormal.h), which is less than reducing it.
constexpr std::size_t kSampled = 4096;
constexpr std::size_t kRun = 64;

}  // namespace

Request& AutomaticCodec::exchange(std::uint64_t number, const CollectiveOptions& options) {
  auto exchange = std::make_unique<Exchange>();
  exchange->number = number;
  const std::span sums(exchange->sums);
  exchange->request.spec = {.kind = OperationKind::all_reduce, .input = sums, .output = sums};
  exchange->request.spec.options.delivery = exact(options.delivery.deadline);
  exchanges_.push_back(std::move(exchange));
  return exchanges_.back()->request;
}

bool AutomaticCodec::is_exchange(const Request& request) const {
  return std::any_of(exchanges_.begin(), exchanges_.end(),
                     [&](const auto& exchange) { return &exchange->request == &request; });
}

void AutomaticCodec::on_start(const Request& request) {
  for (const auto& exchange : exchanges_) {
    if (&exchange->request == &request) hand_over(*exchange);
  }
}

// Moves this rank's statistics into the exchange. Adds to the sums there: an earlier attempt to
// start the exchange may have moved statistics before it failed for lack of room.
void AutomaticCodec::hand_over(Exchange& exchange) {
  auto next = exchange.sums.begin();
  for (const double sum : fit_.sums()) *next++ += sum;
  for (const double sum : {noise_.gradient_mean_square, noise_.encoded_mean_square,
                           noise_.loss_variance, noise_.elements}) {
    *next++ += sum;
  }
  fit_ = {};
  noise_ = {};
}

bool AutomaticCodec::ready(std::uint64_t number) const {
  return std::all_of(exchanges_.begin(), exchanges_.end(), [&](const auto& exchange) {
    return exchange->number + kPeriod > number || exchange->request.done;
  });
}

CodecOptions AutomaticCodec::choose(std::uint64_t number) {
  while (!exchanges_.empty() && exchanges_.front()->number + kPeriod <= number) {
    const Exchange& exchange = *exchanges_.front();
    if (exchange.request.status.ok()) choice_ = choice_from(exchange);
    exchanges_.pop_front();
  }
  return choice_;
}

CodecOptions AutomaticCodec::choice_from(const Exchange& exchange) const {
  std::array<double, estimate::LognormalFit::kSums> fit_sums{};
  std::copy_n(exchange.sums.begin(), fit_sums.size(), fit_sums.begin());
  const estimate::LognormalFit fit(fit_sums);
  const double* noise = exchange.sums.data() + fit_sums.size();
  const double elements = noise[3];
  if (!(elements > 0.0)) return choice_;  // no measurement since the last exchange
  const auto mean = [&](double sum) { return sum / elements; };
  return estimate::choose_codec({.sigma_log2 = fit.sigma_log2(),
                                 .encoded_mean_square = mean(noise[1]),
                                 .gradient_mean_square = mean(noise[0]),
                                 .loss_variance = mean(noise[2])});
}

void AutomaticCodec::observe(std::span<const float> contribution) {
  if (contribution.size() <= kSampled) return fit_.add(contribution);
  const std::size_t stride = contribution.size() / (kSampled / kRun);
  for (std::size_t at = 0; at + kRun <= contribution.size(); at += stride)
    fit_.add(contribution.subspan(at, kRun));
}

// Skips a reduction whose gradient overflowed, because its noise says nothing about other steps.
void AutomaticCodec::observe(const estimate::NoiseEstimate& noise, std::size_t elements_owned) {
  const double contribution = noise.gradient_mean_square + noise.dispersion;
  if (!std::isfinite(contribution) || !std::isfinite(noise.loss_variance)) return;
  const auto weight = static_cast<double>(elements_owned);
  noise_.gradient_mean_square += weight * noise.gradient_mean_square;
  noise_.encoded_mean_square += weight * contribution * noise.encoded_share;
  noise_.loss_variance += weight * noise.loss_variance;
  noise_.elements += weight;
}

}  // namespace leeway::collective
