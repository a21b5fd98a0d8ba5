// A sample of bounded size of a long tensor: every 2^k-th packet, whole, so that it is spread
// evenly. k is as small as the bound allows.
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

  // Returns the kept packets one after the other: the whole tensor while it fits.
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
