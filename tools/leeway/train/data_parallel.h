// One data-parallel step over a lossy communicator: every rank brings a gradient, and gets the
// updated model.
//
// The caller has computed its gradient. update() combines it with the others', runs the optimizer
// and writes the new parameters in place. There are two schemes (settings.h, Mode).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "leeway/communicator.h"
#include "leeway/replica.h"
#include "leeway/report.h"
#include "train/codec_log.h"
#include "train/noise_log.h"
#include "train/settings.h"

namespace leeway::tools::train {

// Packets and bytes that this rank's training operations sent and received.
struct Traffic {
  std::uint64_t packets_expected = 0;
  std::uint64_t packets_arrived_first = 0;  // without packets that came by repair
  std::uint64_t bytes_sent = 0;
  std::uint64_t elements_untouched =
      0;  // gradient elements of the own shard that no rank's contribution reached
  std::uint64_t deadline_cuts = 0;  // operations that the deadline ended

  void add(const CollectiveReport& report);
  double loss() const;
};

class DataParallel {
 public:
  virtual ~DataParallel() = default;
  // Makes one step; all ranks must call it together. The gradient is the sum of the mean gradients
  // of `weight` micro-batches (CollectiveOptions::weight).
  virtual Status update(double learning_rate, double weight) = 0;
  // Returns the drift of the replicas; nullopt in ddp mode, where replicas are equal.
  virtual std::optional<DriftReport> drift() const = 0;

  const Traffic& traffic() const { return traffic_; }
  // Returns the measured noise of the reduced gradients.
  const NoiseLog& noise() const { return noise_; }
  const CodecLog& codecs() const { return codecs_; }

 protected:
  DataParallel(Communicator& communicator, std::span<float> gradient);

  void record_reduction(const CollectiveReport& report);
  void record_broadcast(const CollectiveReport& report) { traffic_.add(report); }

 private:
  Traffic traffic_;
  NoiseLog noise_;
  CodecLog codecs_;
  MemoryRegistration gradient_registered_;
};

// `parameters` must be equal on all ranks. Both spans must outlive the result.
Result<std::unique_ptr<DataParallel>> make_data_parallel(Communicator& communicator,
                                                         std::span<float> parameters,
                                                         std::span<float> gradient,
                                                         const Settings& settings);

}  // namespace leeway::tools::train
