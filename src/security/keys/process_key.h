// The X25519 key of one process. The private half stays in this class; the public half goes into
// the table of members.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "keys/derive.h"
#include "leeway/status.h"

namespace leeway::keys {

class ProcessKey {
 public:
  // Makes a new key from random bytes, and from facts that tell this start of this process on this
  // machine from all others. A cloned machine may draw the same random bytes as its twin.
  static Result<std::shared_ptr<const ProcessKey>> make();
  // Makes a key from a given private half, for the simulator.
  static Result<std::shared_ptr<const ProcessKey>> make(const Key& private_half);
  ~ProcessKey() { wipe(private_); }
  ProcessKey(const ProcessKey&) = delete;
  ProcessKey& operator=(const ProcessKey&) = delete;

  const Key& public_half() const { return public_; }

  // Returns the key that only this process and the owner of the other half can compute, for one
  // lane of one meeting. Returns kMismatch if the bytes are no public half, or kInternal if this
  // key was asked for before. A key is given out only once, so that no two counters of this process
  // number datagrams under it.
  Result<Key> agree(const Key& other, const Key& meeting, std::uint8_t lane) const;

 private:
  ProcessKey() = default;

  Key private_{};
  Key public_{};
  mutable std::mutex mutex_;
  mutable std::set<Key> given_;  // digests of other half, meeting and lane
};

}  // namespace leeway::keys
