// Cuts a train into its datagrams, as a network does.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "leeway/transport.h"

namespace leeway::support {

// Calls use(datagram) for each datagram in order. The bytes of the datagram are valid only during
// that call.
template <typename Use>
void for_each_datagram(const Train& train, Use&& use) {
  std::vector<std::byte> bytes;
  for (const Slice& slice : train.slices)
    bytes.insert(bytes.end(), slice.data, slice.data + slice.bytes);
  for (std::size_t at = 0; at < bytes.size(); at += train.segment_bytes)
    use(ByteSpan(bytes).subspan(at, std::min(train.segment_bytes, bytes.size() - at)));
}

}  // namespace leeway::support
