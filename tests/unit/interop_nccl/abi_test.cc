// Compares the drop-in's declarations of the binary interface with NVIDIA's, if that is installed.
#include "interop/nccl/abi.h"

#include <gtest/gtest.h>

#include "interop/nccl/codes.h"
#include "interop/nccl/functions.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)

#include <nccl.h>

#include <type_traits>

namespace leeway::nccl {
namespace {

#define SAME_PLACE(theirs, ours) \
  static_assert(offsetof(ncclConfig_t, theirs) == offsetof(leeway_nccl_config, ours))
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(cgaClusterSize, cga_cluster_size);
SAME_PLACE(minCTAs, min_ctas);
SAME_PLACE(maxCTAs, max_ctas);
SAME_PLACE(netName, net_name);
SAME_PLACE(splitShare, split_share);
SAME_PLACE(trafficClass, traffic_class);
SAME_PLACE(commName, comm_name);
SAME_PLACE(collnetEnable, collnet_enable);
SAME_PLACE(CTAPolicy, cta_policy);
SAME_PLACE(shrinkShare, shrink_share);
SAME_PLACE(nvlsCTAs, nvls_ctas);
SAME_PLACE(nChannelsPerNetPeer, channels_per_net_peer);
SAME_PLACE(nvlinkCentricSched, nvlink_centric_sched);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
SAME_PLACE(graphUsageMode, graph_usage_mode);
SAME_PLACE(graphStreamOrdering, graph_stream_ordering);
static_assert(sizeof(ncclConfig_t) == sizeof(leeway_nccl_config));
#else
static_assert(sizeof(ncclConfig_t) == offsetof(leeway_nccl_config, graph_usage_mode));
#endif
#undef SAME_PLACE

static_assert(sizeof(ncclUniqueId) == sizeof(leeway_nccl_id));
static_assert(sizeof(ncclSimInfo_t) == sizeof(leeway_nccl_sim_info));
static_assert(sizeof(ncclResult_t) == sizeof(leeway_nccl_result));
static_assert(sizeof(ncclDataType_t) == sizeof(leeway_nccl_enum));
static_assert(sizeof(ncclRedOp_t) == sizeof(leeway_nccl_enum));
static_assert(ncclSuccess == static_cast<int>(kSuccess));
static_assert(ncclUnhandledCudaError == static_cast<int>(kCudaError));
static_assert(ncclSystemError == static_cast<int>(kSystemError));
static_assert(ncclInternalError == static_cast<int>(kInternalError));
static_assert(ncclInvalidArgument == static_cast<int>(kInvalidArgument));
static_assert(ncclInvalidUsage == static_cast<int>(kInvalidUsage));
static_assert(ncclRemoteError == static_cast<int>(kRemoteError));
static_assert(ncclInProgress == static_cast<int>(kInProgress));
static_assert(NCCL_VERSION(2, 28, 9) == kVersion);

// Compares functions: the same number of arguments, of the same sizes, in the same order.
// Enumerations and opaque pointers have other names, so types may differ.
template <typename Theirs, typename Ours>
struct SameCall : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
struct SameCall<R1(A1...), R2(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) != sizeof...(A2)) {
      return false;
    } else {
      return ((sizeof(A1) == sizeof(A2) && std::is_pointer_v<A1> == std::is_pointer_v<A2> &&
               std::is_class_v<A1> == std::is_class_v<A2>)&&...);
    }
  }();
};

#define SAME_CALL(name)                        \
  static_assert(SameCall<decltype(nccl##name), \
                         std::remove_pointer_t<decltype(leeway_nccl_functions::name)>>::value)
SAME_CALL(GetVersion);
SAME_CALL(GetUniqueId);
SAME_CALL(CommInitRank);
SAME_CALL(CommInitRankConfig);
SAME_CALL(CommInitRankScalable);
SAME_CALL(CommInitAll);
SAME_CALL(CommSplit);
SAME_CALL(CommShrink);
SAME_CALL(CommRevoke);
SAME_CALL(CommGetAsyncError);
SAME_CALL(CommRegister);
SAME_CALL(CommWindowRegister);
SAME_CALL(MemAlloc);
SAME_CALL(RedOpCreatePreMulSum);
SAME_CALL(RedOpDestroy);
SAME_CALL(Reduce);
SAME_CALL(Bcast);
SAME_CALL(Broadcast);
SAME_CALL(AllReduce);
SAME_CALL(ReduceScatter);
SAME_CALL(AllGather);
SAME_CALL(AlltoAll);
SAME_CALL(Gather);
SAME_CALL(Scatter);
SAME_CALL(Send);
SAME_CALL(Recv);
SAME_CALL(GroupSimulateEnd);
#undef SAME_CALL

TEST(NcclAbi, InitialiserOfTheHeaderIsUnderstood) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(theirs.magic, 0xcafebeefU);
  EXPECT_EQ(theirs.size, sizeof theirs);
}

}  // namespace
}  // namespace leeway::nccl

#else

TEST(NcclAbi, HeaderIsComparedWhereItIsInstalled) {
  GTEST_SKIP() << "nccl.h or cuda_runtime.h is not installed";
}

#endif
