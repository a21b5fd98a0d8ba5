#include "codec/packet_sample.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::tools::codecs {

PacketSample::PacketSample(std::size_t packets_max) : packets_max_(packets_max) {
  LEEWAY_ASSERT(packets_max >= 2);
}

// Drops every second packet of the sample. Called only while all packets in it are full.
void PacketSample::thin_out() {
  const std::size_t packets = values_.size() / kPacketElements;
  for (std::size_t p = 2; p < packets; p += 2) {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(p * kPacketElements), kPacketElements,
                values_.begin() + static_cast<std::ptrdiff_t>(p / 2 * kPacketElements));
  }
  values_.resize((packets + 1) / 2 * kPacketElements);
  stride_ *= 2;
}

void PacketSample::add(std::span<const float> values) {
  for (std::size_t begin = 0; begin < values.size(); begin += kPacketElements, ++next_packet_) {
    if (next_packet_ % stride_ == 0 && values_.size() == packets_max_ * kPacketElements) thin_out();
    if (next_packet_ % stride_ != 0) continue;
    const auto packet = values.subspan(begin, std::min(kPacketElements, values.size() - begin));
    values_.insert(values_.end(), packet.begin(), packet.end());
  }
}

}  // namespace leeway::tools::codecs
