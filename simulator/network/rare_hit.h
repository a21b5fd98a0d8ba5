// An event with a small probability for each packet: the distance to the next hit is drawn, so that
// a packet without a hit costs one decrement.
#pragma once

#include <cstdint>

#include "engine/geometric.h"
#include "engine/random_stream.h"

namespace leeway::sim {

class RareHit {
 public:
  // `distance` must outlive this object. It is large, and all links with the same probability share
  // it.
  RareHit(const GeometricDistance& distance, const RandomStream& random)
      : distance_(&distance), random_(random), left_(distance.draw(random_)) {}

  bool next() {
    if (left_ > 0) [[likely]] {
      --left_;
      return false;
    }
    left_ = distance_->draw(random_);
    return true;
  }

  // The random stream, for further draws about the packet that was hit.
  RandomStream& random() { return random_; }

 private:
  const GeometricDistance* distance_;
  RandomStream random_;
  std::uint64_t left_;
};

}  // namespace leeway::sim
