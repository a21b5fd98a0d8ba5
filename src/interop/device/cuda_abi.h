// The part of the CUDA driver's binary interface that Leeway calls. It is declared here, so that
// this room builds without a CUDA toolkit. tests/unit/device/cuda_abi_test.cc compares it with
// NVIDIA's cuda.h if that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway::device::cuda {

// CUresult and other enumerations. Pointers are opaque.
using Code = int;
using Ordinal = int;  // CUdevice
using Address = unsigned long long;
struct ContextObject;
struct StreamObject;
struct EventObject;
struct GraphObject;
struct GraphNodeObject;
struct UserObjectObject;
struct LibraryObject;
struct FunctionObject;
using Context = ContextObject*;
using Stream = StreamObject*;
using Event = EventObject*;
using Graph = GraphObject*;
using GraphNode = GraphNodeObject*;
using UserObject = UserObjectObject*;
using Library = LibraryObject*;
using Function = FunctionObject*;  // CUfunction, and CUkernel, which takes its place
using HostFunction = void (*)(void*);

inline constexpr Code kSuccess = 0;
inline constexpr Code kInvalidValue = 1;
inline constexpr Code kNotInitialized = 3;
inline constexpr Code kInvalidContext = 201;
inline constexpr Code kNotSupported = 801;

// Version of CUDA, 12.0, whose signatures cuGetProcAddress is asked for.
inline constexpr int kVersion = 12000;

// CUpointer_attribute.
inline constexpr int kAttributeMemoryType = 2;
inline constexpr int kAttributeIsManaged = 8;
inline constexpr int kAttributeDeviceOrdinal = 9;
// CUmemorytype.
inline constexpr unsigned kMemoryHost = 1;
inline constexpr unsigned kMemoryDevice = 2;
inline constexpr unsigned kMemoryUnified = 4;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kHighestPriority = -1000;  // the driver uses the device's highest instead
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostDeviceMapped = 2;
inline constexpr unsigned kWaitGreaterOrEqual = 0;     // as signed difference: counters may wrap
inline constexpr unsigned kWriteAfterEarlierWork = 0;  // with a fence before it

// CUstreamCaptureStatus, CUstreamCaptureMode, flags of user objects.
inline constexpr int kCaptureNone = 0;
inline constexpr int kCaptureActive = 1;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr unsigned kUserObjectNoSync = 1;
inline constexpr unsigned kGraphTakesReference = 1;

// CUDA_MEMCPY2D.
struct Copy2D {
  std::size_t source_x;
  std::size_t source_y;
  unsigned source_type;
  const void* source_host;
  Address source_device;
  void* source_array;
  std::size_t source_pitch;
  std::size_t target_x;
  std::size_t target_y;
  unsigned target_type;
  void* target_host;
  Address target_device;
  void* target_array;
  std::size_t target_pitch;
  std::size_t width;
  std::size_t height;
};

// Names and parameters of all functions that are called. cuGetProcAddress gives their addresses.
#define LEEWAY_CUDA_FUNCTIONS(CALL)                                                               \
  CALL(cuInit, (unsigned flags))                                                                  \
  CALL(cuDriverGetVersion, (int* version))                                                        \
  CALL(cuGetErrorName, (Code code, const char** name))                                            \
  CALL(cuGetErrorString, (Code code, const char** text))                                          \
  CALL(cuDeviceGetCount, (int* count))                                                            \
  CALL(cuDeviceGet, (Ordinal * device, int ordinal))                                              \
  CALL(cuDevicePrimaryCtxRetain, (Context * context, Ordinal device))                             \
  CALL(cuCtxGetCurrent, (Context * context))                                                      \
  CALL(cuCtxPushCurrent, (Context context))                                                       \
  CALL(cuCtxPopCurrent, (Context * context))                                                      \
  CALL(cuCtxGetDevice, (Ordinal * device))                                                        \
  CALL(cuMemAlloc, (Address * memory, std::size_t bytes))                                         \
  CALL(cuMemFree, (Address memory))                                                               \
  CALL(cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))                        \
  CALL(cuMemFreeHost, (void* memory))                                                             \
  CALL(cuMemHostGetDevicePointer, (Address * mapped, void* memory, unsigned flags))               \
  CALL(cuPointerGetAttributes, (unsigned count, int* attributes, void** values, Address pointer)) \
  CALL(cuStreamCreateWithPriority, (Stream * stream, unsigned flags, int priority))               \
  CALL(cuStreamDestroy, (Stream stream))                                                          \
  CALL(cuStreamSynchronize, (Stream stream))                                                      \
  CALL(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                           \
  CALL(cuStreamWriteValue32, (Stream stream, Address word, std::uint32_t value, unsigned flags))  \
  CALL(cuStreamWaitValue32, (Stream stream, Address word, std::uint32_t value, unsigned flags))   \
  CALL(cuStreamGetCaptureInfo, (Stream stream, int* status, unsigned long* id, Graph* graph,      \
                                const GraphNode** dependencies, std::size_t* dependency_count))   \
  CALL(cuThreadExchangeStreamCaptureMode, (int* mode))                                            \
  CALL(cuLaunchHostFunc, (Stream stream, HostFunction function, void* argument))                  \
  CALL(cuEventCreate, (Event * event, unsigned flags))                                            \
  CALL(cuEventRecord, (Event event, Stream stream))                                               \
  CALL(cuEventDestroy, (Event event))                                                             \
  CALL(cuMemcpyAsync, (Address target, Address source, std::size_t bytes, Stream stream))         \
  CALL(cuMemcpy2DAsync, (const Copy2D* copy, Stream stream))                                      \
  CALL(cuUserObjectCreate, (UserObject * object, void* argument, HostFunction destroy,            \
                            unsigned references, unsigned flags))                                 \
  CALL(cuUserObjectRelease, (UserObject object, unsigned count))                                  \
  CALL(cuGraphRetainUserObject, (Graph graph, UserObject object, unsigned count, unsigned flags)) \
  CALL(cuLibraryLoadData,                                                                         \
       (Library * library, const void* image, int* jit_options, void** jit_values,                \
        unsigned jit_count, int* options, void** values, unsigned count))                         \
  CALL(cuLibraryGetKernel, (Function * kernel, Library library, const char* name))                \
  CALL(cuLaunchKernel, (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,     \
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,    \
                        Stream stream, void** parameters, void** extra))

}  // namespace leeway::device::cuda
