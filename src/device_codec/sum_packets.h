// Decoding and summing: one warp a packet, whose sum stays in registers while one contribution
// after the other is added. Decoding alone is a sum of one.
#pragma once

#include "device_codec/formats.h"

namespace leeway::device_codec {

template <Codec which>
class PacketSum {
 public:
  using Format = PacketFormat<which>;

  LEEWAY_GPU PacketSum(const Warp& warp, const SumJob& job, unsigned index, RunBuffer& buffer)
      : warp_(warp), job_(job), index_(index), packet_(job.packets, index), buffer_(buffer) {}

  LEEWAY_GPU void run() {
    for (unsigned step = 0; step < packet_.elements; step += kStepElements) {
      begin(step);
      for (unsigned i = 0; i < job_.contributions_count; ++i) {
        const Contribution& one = job_.contributions[i];
        const float factor = one.factors == nullptr ? 1.0f : one.factors[index_];
        if (factor == 0.0f) continue;
        one.encoded ? add_encoded(one.data + packet_.at, factor, step)
                    : add_elements(one.data, factor, step);
        empty_ = false;
      }
      if (!empty_ || job_.absent == SumJob::Absent::zeros) store(step);
    }
  }

 private:
  LEEWAY_GPU void begin(unsigned step) {
    empty_ = !job_.adds;
    warp_.for_each_lane(
        [&](unsigned lane) { sums_[lane] = empty_ ? Slice{} : load(job_.elements, step, lane); });
  }

  LEEWAY_GPU Slice load(const std::byte* elements, unsigned step, unsigned lane) const {
    return load_slice(elements, job_.type, first(step, lane), packet_.end());
  }

  LEEWAY_GPU void store(unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      store_slice(job_.elements, job_.type, first(step, lane), packet_.end(), sums_[lane]);
    });
  }

  LEEWAY_GPU void add_elements(const std::byte* elements, float factor, unsigned step) {
    warp_.for_each_lane([&](unsigned lane) {
      add_weighted(empty_, factor, load(elements, step, lane), sums_[lane]);
    });
  }

  LEEWAY_GPU void add_encoded(const std::byte* header, float factor, unsigned step) {
    const unsigned begin =
        read_run(warp_, buffer_, header + Format::step_at(packet_.elements, step),
                 Format::step_bytes(packet_.elements, step));
    const float packet = packet_factor<which>(header);
    warp_.sync();
    warp_.for_each_lane([&](unsigned lane) {
      const unsigned at = step + lane * kSliceElements;
      if (at >= packet_.elements) return;
      const float block = block_factor<which>(header + Format::scale_at(at), packet);
      add_weighted(empty_, factor * block, decode(begin, lane), sums_[lane]);
    });
    warp_.sync();
  }

  // The slice of a lane, of a run that begins so far into the buffer.
  LEEWAY_GPU Slice decode(unsigned begin, unsigned lane) const {
    SliceCodes<Format::kBits> codes;
    LEEWAY_UNROLL
    for (unsigned i = 0; i < codes.kWords; ++i)
      codes.words[i] = buffer_.word_at(begin + 4 * (lane * codes.kWords + i));
    if constexpr (Format::kSixteenBits) {
      return floats_of<typename Format::Element>(codes);
    } else {
      return values_of<Format::kLayout.element>(codes);
    }
  }

  LEEWAY_GPU std::uint64_t first(unsigned step, unsigned lane) const {
    return packet_.first + step + lane * kSliceElements;
  }

  const Warp& warp_;
  const SumJob& job_;
  const unsigned index_;
  const PacketOfJob packet_;
  RunBuffer& buffer_;
  bool empty_ = true;  // nothing was added yet
  Warp::PerLane<Slice> sums_;
};

// The packets of one of `warps` warps.
template <Codec which>
LEEWAY_GPU void sum_packets(const Warp& warp, const SumJob& job, unsigned index, unsigned warps,
                            RunBuffer& buffer) {
  for (unsigned packet = index; packet < job.packets.count; packet += warps)
    PacketSum<which>(warp, job, packet, buffer).run();
}

}  // namespace leeway::device_codec
