// The X25519 key of one process: the private half stays here, the public one goes into the table of
// members.
#pragma once

#include <memory>

#include "keys/derive.h"
#include "leeway/status.h"

namespace leeway::keys {

class ProcessKey {
 public:
  // A new one, of random bytes.
  static Result<std::shared_ptr<const ProcessKey>> make();
  ~ProcessKey() { wipe(private_); }
  ProcessKey(const ProcessKey&) = delete;
  ProcessKey& operator=(const ProcessKey&) = delete;

  const Key& public_half() const { return public_; }

  // What this process and the owner of the other half alone can compute. kMismatch: the bytes are
  // no public half.
  Result<Key> agree(const Key& other) const;

 private:
  ProcessKey() = default;
  Key private_{};
  Key public_{};
};

}  // namespace leeway::keys
