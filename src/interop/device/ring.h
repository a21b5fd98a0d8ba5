// Places the staging memory of steps in a ring. Arithmetic only.
//
// Leases lie one behind the other and end in any order. close() says that the last work that uses a
// lease is enqueued. A new lease takes memory of closed leases only, and its owner first waits for
// their signals.
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
  // Every lease begins at a multiple of a page, which suits copy engines.
  static constexpr std::size_t kAlignment = 4096;

  explicit Ring(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }

  struct Lease {
    std::size_t offset = 0;
    std::uint64_t number = 0;
  };
  // Gives a lease. `over` gets the signals of the leases that had this memory before. Returns
  // nullopt and changes nothing if a lease there is not closed, or if the ring is too short.
  std::optional<Lease> place(std::size_t bytes, const Signal& signal, std::vector<Signal>& over);
  void close(const Lease& lease);

 private:
  // A piece of the ring and the lease that had it last. Later leases may have left only this part
  // of that lease.
  struct Entry {
    std::size_t end = 0;
    Signal signal;
    std::uint64_t number = 0;
    bool closed = false;
  };
  using Entries = std::map<std::size_t, Entry>;
  // Returns the first entry that ends behind `begin`.
  Entries::iterator first_behind(std::size_t begin);

  const std::size_t bytes_;
  std::size_t next_ = 0;  // where the last lease ends
  std::uint64_t leases_ = 0;
  Entries entries_;  // entries by their beginning; they do not overlap
};

}  // namespace leeway::device
