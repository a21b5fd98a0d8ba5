// Which part of a ring of staging memory a step gets. Arithmetic only.
//
// Leases are given one behind the other and end in any order. A lease is closed once the work that
// ends it is enqueued; only over closed ones may a new one lie, and whoever gets it waits for their
// signals first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "device/signal.h"

namespace leeway::device {

class Ring {
 public:
  // Every lease begins at a multiple: of a page, which copy engines like.
  static constexpr std::size_t kAlignment = 4096;

  explicit Ring(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }

  struct Lease {
    std::size_t offset = 0;
    std::uint64_t number = 0;
  };
  // `over`: gets the signals of all that had any of this memory last. Nothing, and no change: a
  // lease that is not closed is in the way, or the ring is smaller.
  std::optional<Lease> place(std::size_t bytes, const Signal& signal, std::vector<Signal>& over);
  void close(const Lease& lease);

 private:
  // Memory and who had it last: a lease, or what later ones left of it.
  struct Entry {
    std::size_t end = 0;
    Signal signal;
    std::uint64_t number = 0;
    bool closed = false;
  };
  using Entries = std::map<std::size_t, Entry>;
  // The first that ends behind `begin`.
  Entries::iterator first_behind(std::size_t begin);

  const std::size_t bytes_;
  std::size_t next_ = 0;  // where the last lease ends
  std::uint64_t leases_ = 0;
  Entries entries_;  // by where they begin; none has memory of another
};

}  // namespace leeway::device
