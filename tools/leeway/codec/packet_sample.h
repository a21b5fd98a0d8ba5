// A sample of a long tensor, of bounded size: every 2^k-th packet as a whole, so that the sample is
// spread evenly. k is as small as the bound allows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/error_meter.h"

namespace leeway::tools::codecs {

class PacketSample {
 public:
  explicit PacketSample(std::size_t packets_max);

  // Adds the tensor's next elements. Their number must be a multiple of kPacketElements in all
  // calls but the last.
  void add(std::span<const float> values);

  // Returns the kept packets one after the other. They are the whole tensor as long as it fits.
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
