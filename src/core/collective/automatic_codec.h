// Chooses the codec for Codec::automatic in one communicator. Statistics of gradients are gathered
// at every automatic reduction. Every kPeriod reductions the ranks add them up in an extra exact
// all_reduce, the exchange. Its sums are the same everywhere, so all ranks choose the same codec.
// The choice applies a period after the exchange began, so that ranks need not wait for its end.
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

  // Numbers the automatic reductions in the order in which they are submitted, which is the same on
  // all ranks.
  std::uint64_t next_number() { return next_number_++; }
  // Returns true if an exchange goes before the reduction of this number. The caller then submits
  // exchange().
  bool exchange_due(std::uint64_t number) const { return number != 0 && number % kPeriod == 0; }
  Request& exchange(std::uint64_t number, const CollectiveOptions& options);
  bool is_exchange(const Request& request) const;
  // Call it when any request is about to start. If the request is an exchange, it gets the
  // statistics gathered so far: it may start long after it was submitted.
  void on_start(const Request& request);

  // Returns true if the choice for this reduction is known, that is, if the exchanges that began at
  // least a period before it are done.
  bool ready(std::uint64_t number) const;
  // Call only if ready(), and in the order of the numbers.
  CodecOptions choose(std::uint64_t number);

  // Adds this rank's contribution to a reduction, or the noise of its result, to the statistics.
  void observe(std::span<const float> contribution);
  void observe(const estimate::NoiseEstimate& noise, std::size_t elements_owned);

 private:
  struct Exchange {
    std::uint64_t number = 0;
    Request request;
    std::array<double, estimate::LognormalFit::kSums + 4> sums{};
  };
  // Sums weighted by elements, so that shards of all ranks count alike.
  struct NoiseSums {
    double gradient_mean_square = 0.0;
    // Mean square of the contributions, times their share in the result's noise.
    double encoded_mean_square = 0.0;
    double loss_variance = 0.0;
    double elements = 0.0;
  };

  CodecOptions choice_from(const Exchange& exchange) const;
  void hand_over(Exchange& exchange);

  std::uint64_t next_number_ = 0;
  // Before anything is known, the choice is a codec with little noise on any gradient.
  CodecOptions choice_{Codec::fp8_e4m3_block};
  estimate::LognormalFit fit_;
  NoiseSums noise_;
  std::deque<std::unique_ptr<Exchange>> exchanges_;  // not yet applied
};

}  // namespace leeway::collective
