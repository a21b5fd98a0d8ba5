// Codec::automatic of one communicator: what gradients look like is gathered at every automatic
// reduction; every kPeriod of them the ranks add up what they gathered by an exact all_reduce of
// their own, and from these sums, which are the same everywhere, each chooses the same codec. The
// choice counts from the period after the exchange, so that nobody waits for it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "collective/request.h"
#include "estimate/lognormal.h"
#include "estimate/noise.h"
#include "leeway/codec.h"

namespace leeway::collective {

class AutomaticCodec {
 public:
  static constexpr std::uint64_t kPeriod = 16;  // reductions

  // Numbers the automatic reductions, in the order in which they are submitted, which is the same
  // on all ranks.
  std::uint64_t next_number() { return next_number_++; }
  // Whether an exchange goes before the reduction of this number; if so the caller submits
  // exchange().
  bool exchange_due(std::uint64_t number) const { return number != 0 && number % kPeriod == 0; }
  Request& exchange(std::uint64_t number, const CollectiveOptions& options);
  // Any request is about to start: an exchange takes along what was gathered until now, which may
  // be long after it was submitted. Returns whether it is one.
  bool on_start(const Request& request);

  // Whether the choice for this reduction is known: the exchange one period before it is done.
  bool ready(std::uint64_t number) const;
  // Only if ready, and in the order of the numbers.
  CodecOptions choose(std::uint64_t number);

  // What this rank contributes to a reduction, and what came out of it.
  void observe(std::span<const float> contribution);
  void observe(const estimate::NoiseEstimate& noise, std::size_t elements_owned);

 private:
  struct Exchange {
    std::uint64_t number = 0;
    Request request;
    std::array<double, estimate::LognormalFit::kSums + 4> sums{};
  };
  // Weighted by elements, so that shards of all ranks count alike.
  struct NoiseSums {
    double gradient_mean_square = 0.0;
    double encoded_mean_square = 0.0;  // of contributions, times their share in the result's noise
    double loss_variance = 0.0;
    double elements = 0.0;
  };

  CodecOptions choice_from(const Exchange& exchange) const;
  void hand_over(Exchange& exchange);

  std::uint64_t next_number_ = 0;
  CodecOptions choice_{
      Codec::fp8_e4m3_block};  // until something is known: little noise on any gradient
  estimate::LognormalFit fit_;
  NoiseSums noise_;
  std::deque<std::unique_ptr<Exchange>> exchanges_;  // not yet applied
};

}  // namespace leeway::collective
