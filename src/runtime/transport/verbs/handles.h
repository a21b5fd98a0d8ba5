// Owners of the objects of libibverbs and librdmacm. They do not report that an object could not be
// released. That happens if its device is gone, and the object then disappears with the device's
// context.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace leeway::transport {

template <auto kRelease>
struct Releaser {
  void operator()(auto* object) const { (void)kRelease(object); }
};
template <typename Object, auto kRelease>
using Handle = std::unique_ptr<Object, Releaser<kRelease>>;

using ContextHandle = Handle<ibv_context, ibv_close_device>;
using DomainHandle = Handle<ibv_pd, ibv_dealloc_pd>;
using ChannelHandle = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;
using CompletionsHandle = Handle<ibv_cq, ibv_destroy_cq>;
using QueuePairHandle = Handle<ibv_qp, ibv_destroy_qp>;
using AddressHandle = Handle<ibv_ah, ibv_destroy_ah>;
using RegionHandle = Handle<ibv_mr, ibv_dereg_mr>;

}  // namespace leeway::transport
