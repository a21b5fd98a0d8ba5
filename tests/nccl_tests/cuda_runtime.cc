// A stand-in for the CUDA runtime library on machines without a GPU: devices are numbers, device
// memory is memory of the host, and each call returns when its work is done. It has the functions
// that nccl-tests call, and those that code from nvcc calls when a program starts. Kernels cannot
// be launched, and streams cannot be captured.
//
// STAND_IN_DEVICES is the number of devices (default 8).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{4} << 30;
constexpr std::size_t kAlignment = 4096;

thread_local int current_device = 0;

int devices() {
  const char* text = std::getenv("STAND_IN_DEVICES");
  return text == nullptr ? 8 : std::atoi(text);
}

bool exists(int device) {
  return device >= 0 && device < devices();
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Events hold the time at which they were recorded.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double& time_of(cudaEvent_t event) {
  return *reinterpret_cast<double*>(event);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "host memory");
  properties->totalGlobalMem = kDeviceBytes;
  properties->pciBusID = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    default:
      return "not supported by the stand-in for the CUDA runtime";
  }
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes);
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return allocate(memory, bytes);
}

cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = static_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(std::calloc(1, sizeof(double)));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  time_of(event) = seconds_now();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = static_cast<float>(1e3 * (time_of(to) - time_of(from)));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

// Functions that nvcc's code calls. Kernels are registered and never run.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {}
char __cudaInitModule(void**) {
  return 1;
}
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, cudaStream_t) {
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(void**, const void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaLaunchKernel(void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // extern "C"
