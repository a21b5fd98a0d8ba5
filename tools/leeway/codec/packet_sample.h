// A bounded part of a long tensor, spread evenly over it: every 2^k-th packet as a whole, with k as
// small as the bound allows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/error_meter.h"

namespace leeway::tools::codecs {

class PacketSample {
 public:
  explicit PacketSample(std::size_t packets_max);

  // Adds the tensor's next elements. All calls but the last give a multiple of kPacketElements.
  void add(std::span<const float> values);

  // The kept packets one after the other; the whole tensor as long as it fits.
  std::span<const float> values() const { return values_; }
  std::size_t stride() const { return stride_; }

 private:
  void thin_out();

  std::size_t packets_max_;
  std::size_t stride_ = 1;
  std::size_t next_packet_ = 0;  // index in the tensor
  std::vector<float> values_;
};

}  // namespace leeway::tools::codecs
