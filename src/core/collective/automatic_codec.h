// Chooses the codec for Codec::automatic in one communicator. Each rank gathers statistics of the
// gradients at every automatic reduction. Every kPeriod reductions the ranks add their statistics
// up in an extra exact all_reduce, the "exchange". All ranks get the same sums, so all choose the
// same codec. Ranks use the new codec from the kPeriod-th reduction after the exchange on, so that
// no reduction has to wait for the exchange.
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
  // Returns true if the caller must submit exchange() before the reduction of this number.
  bool exchange_due(std::uint64_t number) const { return number != 0 && number % kPeriod == 0; }
  Request& exchange(std::uint64_t number, const CollectiveOptions& options);
  bool is_exchange(const Request& request) const;
  // Call it when any request is about to start. If the request is an exchange, it takes in the
  // statistics only now, so that it has those that were gathered while it was queued.
  void on_start(const Request& request);

  // Returns true if choose() knows the codec for this reduction: all exchanges that precede it by
  // kPeriod reductions or more are done.
  bool ready(std::uint64_t number) const;
  // Returns the codec. Requires ready(number). Call in the order of the numbers.
  CodecOptions choose(std::uint64_t number);

  // Updates the statistics by what this rank contributes to a reduction, or by the noise of the
  // reduction's result in the `elements_owned` elements that this rank owns.
  void observe(std::span<const float> contribution);
  void observe(const estimate::NoiseEstimate& noise, std::size_t elements_owned);

 private:
  struct Exchange {
    std::uint64_t number = 0;
    Request request;
    std::array<double, estimate::LognormalFit::kSums + 4> sums{};
  };
  // Sums over the elements that this rank owns in each reduction. Every element has the same
  // weight, so a longer shard has more weight in the sums of all ranks.
  struct NoiseSums {
    double gradient_mean_square = 0.0;
    // Mean square of the contributions, times NoiseEstimate::encoded_share: the factor with which
    // the encoding noise of one contribution enters the result.
    double encoded_mean_square = 0.0;
    double loss_variance = 0.0;
    double elements = 0.0;
  };

  CodecOptions choice_from(const Exchange& exchange) const;
  void hand_over(Exchange& exchange);

  std::uint64_t next_number_ = 0;
  // Codec until the first exchange is done: one that adds little noise to any gradient.
  CodecOptions choice_{Codec::fp8_e4m3_block};
  estimate::LognormalFit fit_;
  NoiseSums noise_;
  std::deque<std::unique_ptr<Exchange>> exchanges_;  // not yet applied
};

}  // namespace leeway::collective
