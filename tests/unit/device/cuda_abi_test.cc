// Compares our declarations of the driver's interface with NVIDIA's, if cuda.h is installed.
#include "device/cuda_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

namespace leeway::device::cuda {
namespace {

static_assert(sizeof(CUresult) == sizeof(Code));
static_assert(sizeof(CUdevice) == sizeof(Ordinal));
static_assert(sizeof(CUdeviceptr) == sizeof(Address));
static_assert(int{CUDA_SUCCESS} == kSuccess);
static_assert(int{CUDA_ERROR_INVALID_VALUE} == kInvalidValue);
static_assert(int{CUDA_ERROR_NOT_INITIALIZED} == kNotInitialized);
static_assert(int{CUDA_ERROR_INVALID_CONTEXT} == kInvalidContext);
static_assert(int{CUDA_ERROR_NOT_SUPPORTED} == kNotSupported);
static_assert(int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE} == kAttributeMemoryType);
static_assert(int{CU_POINTER_ATTRIBUTE_IS_MANAGED} == kAttributeIsManaged);
static_assert(int{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL} == kAttributeDeviceOrdinal);
static_assert(unsigned{CU_MEMORYTYPE_HOST} == kMemoryHost);
static_assert(unsigned{CU_MEMORYTYPE_DEVICE} == kMemoryDevice);
static_assert(unsigned{CU_MEMORYTYPE_UNIFIED} == kMemoryUnified);
static_assert(unsigned{CU_STREAM_NON_BLOCKING} == kStreamNonBlocking);
static_assert(unsigned{CU_EVENT_DISABLE_TIMING} == kEventWithoutTiming);
static_assert(CU_MEMHOSTALLOC_PORTABLE == kHostPortable);
static_assert(CU_MEMHOSTALLOC_DEVICEMAP == kHostDeviceMapped);
static_assert(unsigned{CU_STREAM_WAIT_VALUE_GEQ} == kWaitGreaterOrEqual);
static_assert(unsigned{CU_STREAM_WRITE_VALUE_DEFAULT} == kWriteAfterEarlierWork);
static_assert(int{CU_STREAM_CAPTURE_STATUS_NONE} == kCaptureNone);
static_assert(int{CU_STREAM_CAPTURE_STATUS_ACTIVE} == kCaptureActive);
static_assert(int{CU_STREAM_CAPTURE_MODE_RELAXED} == kCaptureRelaxed);
static_assert(unsigned{CU_USER_OBJECT_NO_DESTRUCTOR_SYNC} == kUserObjectNoSync);
static_assert(unsigned{CU_GRAPH_USER_OBJECT_MOVE} == kGraphTakesReference);

#define SAME_PLACE(theirs, ours) \
  static_assert(offsetof(CUDA_MEMCPY2D, theirs) == offsetof(Copy2D, ours))
SAME_PLACE(srcXInBytes, source_x);
SAME_PLACE(srcY, source_y);
SAME_PLACE(srcMemoryType, source_type);
SAME_PLACE(srcHost, source_host);
SAME_PLACE(srcDevice, source_device);
SAME_PLACE(srcArray, source_array);
SAME_PLACE(srcPitch, source_pitch);
SAME_PLACE(dstXInBytes, target_x);
SAME_PLACE(dstY, target_y);
SAME_PLACE(dstMemoryType, target_type);
SAME_PLACE(dstHost, target_host);
SAME_PLACE(dstDevice, target_device);
SAME_PLACE(dstArray, target_array);
SAME_PLACE(dstPitch, target_pitch);
SAME_PLACE(WidthInBytes, width);
SAME_PLACE(Height, height);
#undef SAME_PLACE
static_assert(sizeof(CUDA_MEMCPY2D) == sizeof(Copy2D));

// Compares functions: the same number of arguments, of the same sizes, in the same order.
// Enumerations and opaque pointers have other names.
template <typename Theirs, typename Ours>
struct SameCall : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
struct SameCall<R1 (*)(A1...), R2 (*)(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) != sizeof...(A2)) {
      return false;
    } else {
      return ((sizeof(A1) == sizeof(A2) && std::is_pointer_v<A1> == std::is_pointer_v<A2>)&&...);
    }
  }();
};

#define OURS(name, parameters) using name##_ours = Code(*) parameters;
LEEWAY_CUDA_FUNCTIONS(OURS)
#undef OURS
// Compares with the newest signature that is not newer than kVersion, which cuGetProcAddress would
// find.
#define SAME_CALL(name, version) \
  static_assert(SameCall<PFN_##name##_v##version, name##_ours>::value)
SAME_CALL(cuInit, 2000);
SAME_CALL(cuDriverGetVersion, 2020);
SAME_CALL(cuGetErrorName, 6000);
SAME_CALL(cuGetErrorString, 6000);
SAME_CALL(cuDeviceGetCount, 2000);
SAME_CALL(cuDeviceGet, 2000);
SAME_CALL(cuDevicePrimaryCtxRetain, 7000);
SAME_CALL(cuCtxGetCurrent, 4000);
SAME_CALL(cuCtxPushCurrent, 4000);
SAME_CALL(cuCtxPopCurrent, 4000);
SAME_CALL(cuCtxGetDevice, 2000);
SAME_CALL(cuMemAlloc, 3020);
SAME_CALL(cuMemFree, 3020);
SAME_CALL(cuMemHostAlloc, 2020);
SAME_CALL(cuMemFreeHost, 2000);
SAME_CALL(cuMemHostGetDevicePointer, 3020);
SAME_CALL(cuPointerGetAttributes, 7000);
SAME_CALL(cuStreamCreateWithPriority, 5050);
SAME_CALL(cuStreamDestroy, 4000);
SAME_CALL(cuStreamSynchronize, 2000);
SAME_CALL(cuStreamWaitEvent, 3020);
SAME_CALL(cuStreamWriteValue32, 11070);
SAME_CALL(cuStreamWaitValue32, 11070);
SAME_CALL(cuStreamGetCaptureInfo, 11030);
SAME_CALL(cuThreadExchangeStreamCaptureMode, 10010);
SAME_CALL(cuLaunchHostFunc, 10000);
SAME_CALL(cuEventCreate, 2000);
SAME_CALL(cuEventRecord, 2000);
SAME_CALL(cuEventDestroy, 4000);
SAME_CALL(cuMemcpyAsync, 4000);
SAME_CALL(cuMemcpy2DAsync, 3020);
SAME_CALL(cuUserObjectCreate, 11030);
SAME_CALL(cuUserObjectRelease, 11030);
SAME_CALL(cuGraphRetainUserObject, 11030);
SAME_CALL(cuLibraryLoadData, 12000);
SAME_CALL(cuLibraryGetKernel, 12000);
SAME_CALL(cuLaunchKernel, 4000);
#undef SAME_CALL

TEST(CudaAbi, DeclarationsAreThoseOfCudaH) {
  SUCCEED() << "compared at compile time with CUDA " << CUDA_VERSION;
}

}  // namespace
}  // namespace leeway::device::cuda

#else

TEST(CudaAbi, HeaderIsComparedWhereItIsInstalled) {
  GTEST_SKIP() << "cuda.h is not installed";
}

#endif
