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

// Page-aligned memory of the transport's own, zeroed and registered.
class Arena {
 public:
  // `what` is for the text of an error; `access` as for ibv_reg_mr().
  static Result<Arena> make(ibv_pd* domain, const VerbsPort& port, const char* what,
                            std::size_t bytes, int access);

  std::byte* data() const { return memory_.get(); }
  std::uint32_t key() const { return region_->lkey; }
  // The device is gone; the memory stays.
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
  // Registers and releases; both replaced in tests.
  struct Calls {
    std::function<RegionHandle::pointer(ByteSpan)> add;
    std::function<void(RegionHandle::pointer)> drop;
  };
  explicit Regions(Calls calls) : calls_(std::move(calls)) {}
  ~Regions() { clear(); }
  Regions(const Regions&) = delete;

  // 0, or the errno of the registration.
  int add(ByteSpan memory);
  // The span of an add(); others are ignored.
  void drop(ByteSpan memory);
  void clear();

  // The key of a registered span that contains these bytes. Where spans overlap, only the one that
  // begins last is looked at. A piece that only another span contains is copied: slower, but right.
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
