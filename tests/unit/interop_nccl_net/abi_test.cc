// Checks where each member of NCCL's binary interface lies in the plugin's declarations. Also
// compares them with NVIDIA's own headers, if CMake is given those (LEEWAY_NCCL_NET_INCLUDE_DIR).
#include "interop/nccl_net/abi.h"

#include <gtest/gtest.h>

#ifdef LEEWAY_HAVE_NCCL_NET_H
// NVIDIA's headers need these declarations of nccl.h and NCCL's common.h.
#include <cstdint>
enum ncclResult_t { ncclSuccess };
using ncclDebugLogger_t = void (*)(int level, unsigned long flags, const char* file, int line,
                                   const char* format, ...);
using ncclProfilerCallback_t = ncclResult_t (*)(void** handle, int type, void* parent,
                                                std::int64_t plugin, void* data);
// clang-format off: in this order
#include <net_device.h>
#include <net_v10.h>
#include <net_v11.h>
#include <net_v12.h>
#include <net_v6.h>
#include <net_v7.h>
#include <net_v8.h>
#include <net_v9.h>
// clang-format on
#endif

namespace {

// NCCL reads properties from memory that the plugin wrote, so each member must lie where NCCL
// expects it.
#define AT(version, member, place) \
  static_assert(offsetof(leeway_nccl_net_properties_##version, member) == place)
AT(v6, name, 0);
AT(v6, pci_path, 8);
AT(v6, guid, 16);
AT(v6, pointer_kinds, 24);
AT(v6, speed, 28);
AT(v6, port, 32);
AT(v6, latency, 36);
AT(v6, comms_max, 40);
AT(v6, receives_max, 44);
AT(v7, speed, 28);
AT(v7, latency, 36);
AT(v7, receives_max, 44);
AT(v7, offload_type, 48);
AT(v7, offload_version, 52);
AT(v8, registrations_are_global, 28);
AT(v8, speed, 32);
AT(v8, latency, 40);
AT(v8, receives_max, 48);
AT(v8, offload_type, 52);
AT(v8, offload_version, 56);
AT(v9, registrations_are_global, 28);
AT(v9, force_flush, 32);
AT(v9, speed, 36);
AT(v9, latency, 44);
AT(v9, receives_max, 52);
AT(v9, offload_type, 56);
AT(v9, offload_version, 60);
AT(v9, parts, 64);
AT(v9, message_bytes_max, 88);
AT(v9, collective_bytes_max, 96);
AT(v12, force_flush, 32);
AT(v12, speed, 36);
AT(v12, offload_version, 60);
AT(v12, parts, 64);
AT(v12, message_bytes_max, 104);
AT(v12, collective_bytes_max, 112);
AT(v12, multi_request_max, 120);
AT(v12, rail, 124);
AT(v12, plane, 126);
#undef AT
static_assert(sizeof(leeway_nccl_net_properties_v6) == 48);
static_assert(sizeof(leeway_nccl_net_properties_v7) == 56);
static_assert(sizeof(leeway_nccl_net_properties_v8) == 64);
static_assert(sizeof(leeway_nccl_net_properties_v9) == 104);
static_assert(sizeof(leeway_nccl_net_properties_v11) == 112);
static_assert(sizeof(leeway_nccl_net_properties_v12) == 128);
static_assert(offsetof(leeway_nccl_net_properties_v11, multi_request_max) == 104);
static_assert(sizeof(leeway_nccl_net_parts_v9) == 20 && sizeof(leeway_nccl_net_parts_v12) == 36);

// Each table has `count` pointers, and `last` is the last of them.
#define POINTERS(version, count, last)                                         \
  static_assert(sizeof(leeway_nccl_net_##version) == (count) * sizeof(void*)); \
  static_assert(offsetof(leeway_nccl_net_##version, last) == ((count)-1) * sizeof(void*))
POINTERS(v6, 17, close_listen);
POINTERS(v7, 19, receive_consumed);
POINTERS(v8, 19, receive_consumed);
POINTERS(v9, 20, make_virtual);
POINTERS(v10, 20, make_virtual);
POINTERS(v11, 22, set_attributes);
POINTERS(v12, 22, set_attributes);
#undef POINTERS

#ifdef LEEWAY_HAVE_NCCL_NET_H

#define SAME_PROPERTY(version, theirs, ours)                         \
  static_assert(offsetof(ncclNetProperties_##version##_t, theirs) == \
                offsetof(leeway_nccl_net_properties_##version, ours))
SAME_PROPERTY(v6, name, name);
SAME_PROPERTY(v6, pciPath, pci_path);
SAME_PROPERTY(v6, guid, guid);
SAME_PROPERTY(v6, ptrSupport, pointer_kinds);
SAME_PROPERTY(v6, speed, speed);
SAME_PROPERTY(v6, port, port);
SAME_PROPERTY(v6, latency, latency);
SAME_PROPERTY(v6, maxComms, comms_max);
SAME_PROPERTY(v6, maxRecvs, receives_max);
SAME_PROPERTY(v7, speed, speed);
SAME_PROPERTY(v7, latency, latency);
SAME_PROPERTY(v7, maxRecvs, receives_max);
SAME_PROPERTY(v7, netDeviceType, offload_type);
SAME_PROPERTY(v7, netDeviceVersion, offload_version);
SAME_PROPERTY(v8, regIsGlobal, registrations_are_global);
SAME_PROPERTY(v8, speed, speed);
SAME_PROPERTY(v8, latency, latency);
SAME_PROPERTY(v8, maxRecvs, receives_max);
SAME_PROPERTY(v8, netDeviceType, offload_type);
SAME_PROPERTY(v8, netDeviceVersion, offload_version);
SAME_PROPERTY(v9, regIsGlobal, registrations_are_global);
SAME_PROPERTY(v9, forceFlush, force_flush);
SAME_PROPERTY(v9, speed, speed);
SAME_PROPERTY(v9, latency, latency);
SAME_PROPERTY(v9, maxRecvs, receives_max);
SAME_PROPERTY(v9, netDeviceType, offload_type);
SAME_PROPERTY(v9, netDeviceVersion, offload_version);
SAME_PROPERTY(v9, vProps, parts);
SAME_PROPERTY(v9, maxP2pBytes, message_bytes_max);
SAME_PROPERTY(v9, maxCollBytes, collective_bytes_max);
SAME_PROPERTY(v12, forceFlush, force_flush);
SAME_PROPERTY(v12, speed, speed);
SAME_PROPERTY(v12, netDeviceVersion, offload_version);
SAME_PROPERTY(v12, vProps, parts);
SAME_PROPERTY(v12, maxP2pBytes, message_bytes_max);
SAME_PROPERTY(v12, maxCollBytes, collective_bytes_max);
SAME_PROPERTY(v12, maxMultiRequestSize, multi_request_max);
SAME_PROPERTY(v12, railId, rail);
SAME_PROPERTY(v12, planeId, plane);
#undef SAME_PROPERTY
static_assert(sizeof(ncclNetProperties_v6_t) == sizeof(leeway_nccl_net_properties_v6));
static_assert(sizeof(ncclNetProperties_v7_t) == sizeof(leeway_nccl_net_properties_v7));
static_assert(sizeof(ncclNetProperties_v8_t) == sizeof(leeway_nccl_net_properties_v8));
static_assert(sizeof(ncclNetProperties_v9_t) == sizeof(leeway_nccl_net_properties_v9));
static_assert(sizeof(ncclNetProperties_v11_t) == sizeof(leeway_nccl_net_properties_v11));
static_assert(sizeof(ncclNetProperties_v12_t) == sizeof(leeway_nccl_net_properties_v12));
static_assert(sizeof(ncclNetProperties_v10_t) == sizeof(leeway_nccl_net_properties_v9));

// Compares functions: the same number of arguments, of the same sizes, in the same order.
template <typename Theirs, typename Ours>
inline constexpr bool kSameCall = false;
template <typename R1, typename... A1, typename R2, typename... A2>
inline constexpr bool kSameCall<R1 (*)(A1...), R2 (*)(A2...)> = [] {
  if constexpr (sizeof...(A1) != sizeof...(A2)) {
    return false;
  } else {
    return sizeof(R1) == sizeof(R2) && ((sizeof(A1) == sizeof(A2)) && ...);
  }
}();
#define SAME_CALL(version, theirs, ours)                           \
  static_assert(offsetof(ncclNet_##version##_t, theirs) ==         \
                offsetof(leeway_nccl_net_##version, ours));        \
  static_assert(kSameCall<decltype(ncclNet_##version##_t::theirs), \
                          decltype(leeway_nccl_net_##version::ours)>)
SAME_CALL(v6, init, init);
SAME_CALL(v6, devices, devices);
SAME_CALL(v6, getProperties, properties);
SAME_CALL(v6, listen, listen);
SAME_CALL(v6, connect, connect);
SAME_CALL(v6, accept, accept);
SAME_CALL(v6, regMr, register_memory);
SAME_CALL(v6, regMrDmaBuf, register_dmabuf);
SAME_CALL(v6, deregMr, deregister);
SAME_CALL(v6, isend, send);
SAME_CALL(v6, irecv, receive);
SAME_CALL(v6, iflush, flush);
SAME_CALL(v6, test, test);
SAME_CALL(v6, closeSend, close_send);
SAME_CALL(v6, closeRecv, close_receive);
SAME_CALL(v6, closeListen, close_listen);
SAME_CALL(v7, init, init);
SAME_CALL(v7, devices, devices);
SAME_CALL(v7, getProperties, properties);
SAME_CALL(v7, listen, listen);
SAME_CALL(v7, connect, connect);
SAME_CALL(v7, accept, accept);
SAME_CALL(v7, regMr, register_memory);
SAME_CALL(v7, regMrDmaBuf, register_dmabuf);
SAME_CALL(v7, deregMr, deregister);
SAME_CALL(v7, isend, send);
SAME_CALL(v7, irecv, receive);
SAME_CALL(v7, iflush, flush);
SAME_CALL(v7, test, test);
SAME_CALL(v7, closeSend, close_send);
SAME_CALL(v7, closeRecv, close_receive);
SAME_CALL(v7, closeListen, close_listen);
SAME_CALL(v7, getDeviceMr, device_registration);
SAME_CALL(v7, irecvConsumed, receive_consumed);
SAME_CALL(v8, init, init);
SAME_CALL(v8, devices, devices);
SAME_CALL(v8, getProperties, properties);
SAME_CALL(v8, listen, listen);
SAME_CALL(v8, connect, connect);
SAME_CALL(v8, accept, accept);
SAME_CALL(v8, regMr, register_memory);
SAME_CALL(v8, regMrDmaBuf, register_dmabuf);
SAME_CALL(v8, deregMr, deregister);
SAME_CALL(v8, isend, send);
SAME_CALL(v8, irecv, receive);
SAME_CALL(v8, iflush, flush);
SAME_CALL(v8, test, test);
SAME_CALL(v8, closeSend, close_send);
SAME_CALL(v8, closeRecv, close_receive);
SAME_CALL(v8, closeListen, close_listen);
SAME_CALL(v8, getDeviceMr, device_registration);
SAME_CALL(v8, irecvConsumed, receive_consumed);
SAME_CALL(v9, init, init);
SAME_CALL(v9, devices, devices);
SAME_CALL(v9, getProperties, properties);
SAME_CALL(v9, listen, listen);
SAME_CALL(v9, connect, connect);
SAME_CALL(v9, accept, accept);
SAME_CALL(v9, regMr, register_memory);
SAME_CALL(v9, regMrDmaBuf, register_dmabuf);
SAME_CALL(v9, deregMr, deregister);
SAME_CALL(v9, isend, send);
SAME_CALL(v9, irecv, receive);
SAME_CALL(v9, iflush, flush);
SAME_CALL(v9, test, test);
SAME_CALL(v9, closeSend, close_send);
SAME_CALL(v9, closeRecv, close_receive);
SAME_CALL(v9, closeListen, close_listen);
SAME_CALL(v9, getDeviceMr, device_registration);
SAME_CALL(v9, irecvConsumed, receive_consumed);
SAME_CALL(v9, makeVDevice, make_virtual);
SAME_CALL(v10, init, init);
SAME_CALL(v10, devices, devices);
SAME_CALL(v10, getProperties, properties);
SAME_CALL(v10, listen, listen);
SAME_CALL(v10, connect, connect);
SAME_CALL(v10, accept, accept);
SAME_CALL(v10, regMr, register_memory);
SAME_CALL(v10, regMrDmaBuf, register_dmabuf);
SAME_CALL(v10, deregMr, deregister);
SAME_CALL(v10, isend, send);
SAME_CALL(v10, irecv, receive);
SAME_CALL(v10, iflush, flush);
SAME_CALL(v10, test, test);
SAME_CALL(v10, closeSend, close_send);
SAME_CALL(v10, closeRecv, close_receive);
SAME_CALL(v10, closeListen, close_listen);
SAME_CALL(v10, getDeviceMr, device_registration);
SAME_CALL(v10, irecvConsumed, receive_consumed);
SAME_CALL(v10, makeVDevice, make_virtual);
SAME_CALL(v11, init, init);
SAME_CALL(v11, devices, devices);
SAME_CALL(v11, getProperties, properties);
SAME_CALL(v11, listen, listen);
SAME_CALL(v11, connect, connect);
SAME_CALL(v11, accept, accept);
SAME_CALL(v11, regMr, register_memory);
SAME_CALL(v11, regMrDmaBuf, register_dmabuf);
SAME_CALL(v11, deregMr, deregister);
SAME_CALL(v11, isend, send);
SAME_CALL(v11, irecv, receive);
SAME_CALL(v11, iflush, flush);
SAME_CALL(v11, test, test);
SAME_CALL(v11, closeSend, close_send);
SAME_CALL(v11, closeRecv, close_receive);
SAME_CALL(v11, closeListen, close_listen);
SAME_CALL(v11, getDeviceMr, device_registration);
SAME_CALL(v11, irecvConsumed, receive_consumed);
SAME_CALL(v11, makeVDevice, make_virtual);
SAME_CALL(v11, finalize, finalize);
SAME_CALL(v11, setNetAttr, set_attributes);
SAME_CALL(v12, init, init);
SAME_CALL(v12, devices, devices);
SAME_CALL(v12, getProperties, properties);
SAME_CALL(v12, listen, listen);
SAME_CALL(v12, connect, connect);
SAME_CALL(v12, accept, accept);
SAME_CALL(v12, regMr, register_memory);
SAME_CALL(v12, regMrDmaBuf, register_dmabuf);
SAME_CALL(v12, deregMr, deregister);
SAME_CALL(v12, isend, send);
SAME_CALL(v12, irecv, receive);
SAME_CALL(v12, iflush, flush);
SAME_CALL(v12, test, test);
SAME_CALL(v12, closeSend, close_send);
SAME_CALL(v12, closeRecv, close_receive);
SAME_CALL(v12, closeListen, close_listen);
SAME_CALL(v12, getDeviceMr, device_registration);
SAME_CALL(v12, irecvConsumed, receive_consumed);
SAME_CALL(v12, makeVDevice, make_virtual);
SAME_CALL(v12, finalize, finalize);
SAME_CALL(v12, setNetAttr, set_attributes);
#undef SAME_CALL

#endif

// All other checks are the static assertions above.
TEST(NcclNetAbi, HandlesHaveTheSizeOfAUniqueId) {
  EXPECT_EQ(sizeof(leeway_nccl_id), std::size_t{LEEWAY_NCCL_NET_HANDLE_BYTES});
}

}  // namespace
