// A Rendezvous that passes its calls on to another store, which may appear late or vanish early.
#pragma once

#include <memory>
#include <string>

#include "leeway/rendezvous.h"

namespace leeway::nccl {

class ForwardingRendezvous : public Rendezvous {
 public:
  Status put(std::string_view key, ByteSpan value) final {
    const auto to = store();
    return to.ok() ? (*to)->put(key, value) : to.status();
  }
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) final {
    const auto to = store();
    if (!to.ok()) return to.status();
    return (*to)->get(key, patience);
  }
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) final {
    const auto to = store();
    return to.ok() ? (*to)->put_briefly(key, value, lifetime) : to.status();
  }
  Status erase(std::string_view key) final {
    const auto to = store();
    return to.ok() ? (*to)->erase(key) : to.status();
  }
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) final {
    const auto to = store();
    return to.ok() ? (*to)->get_each(keys, patience, take) : to.status();
  }
  // Returns the present store's value, or 0 if there is no store. Does not make a store.
  Duration round_trip() const override = 0;

 private:
  // Returns the store that a call goes to, or the error that the call returns. Several threads may
  // call it at once.
  virtual Result<std::shared_ptr<Rendezvous>> store() = 0;
};

}  // namespace leeway::nccl
