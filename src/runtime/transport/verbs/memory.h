// Memory that the device may read or write.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/verbs_devices.h"

namespace leeway::transport {

// The transport's own memory: page-aligned, zeroed and registered.
class Arena {
 public:
  // `what` is for the text of an error; `access` as for ibv_reg_mr().
  static Result<Arena> make(ibv_pd* domain, const VerbsPort& port, const char* what,
                            std::size_t bytes, int access);

  std::byte* data() const { return memory_.get(); }
  std::uint32_t key() const { return region_->lkey; }
  // Ends the registration but keeps the memory. Call it when the device is gone.
  void release() { region_.reset(); }

 private:
  struct Freer {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Freer> memory_;
  RegionHandle region_;
};

// Memory of callers from which datagrams are gathered without a copy.
class Regions {
 public:
  // The calls that register and release memory. Tests replace both.
  struct Calls {
    std::function<RegionHandle::pointer(ByteSpan)> add;
    std::function<void(RegionHandle::pointer)> drop;
  };
  explicit Regions(Calls calls) : calls_(std::move(calls)) {}
  ~Regions() { clear(); }
  Regions(const Regions&) = delete;

  // Registers memory. Returns 0, or the errno of the registration.
  int add(ByteSpan memory);
  // Releases memory that was given to add(). Other memory is ignored.
  void drop(ByteSpan memory);
  void clear();

  // Returns the key of a registered span that contains these bytes. If spans overlap, only the one
  // that begins last is examined. Bytes that only another span contains count as unregistered and
  // are copied, which is slower but correct.
  std::optional<std::uint32_t> key_of(const std::byte* data, std::size_t bytes) const;

 private:
  struct Region {
    ByteSpan memory;
    RegionHandle::pointer handle = nullptr;
  };
  std::vector<Region>::const_iterator after(const std::byte* data) const;

  Calls calls_;
  std::vector<Region> regions_;  // by address
};

}  // namespace leeway::transport
