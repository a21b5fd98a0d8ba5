// A stand-in for libcuda.so.1 ("the double") on machines without a GPU: the functions of the CUDA
// driver that Leeway and its tests call. With the double, tests can check the order of work,
// addresses, and that nothing blocks. They cannot measure speed.
//
// It differs from CUDA in two ways: the null stream does not wait for other streams, and all
// streams have the same priority.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "support/cuda_double/control.h"
#include "support/cuda_double/machine.h"
#include "support/cuda_double/memory.h"

namespace leeway::device::cuda {

struct ContextObject {
  int device;
  std::shared_ptr<cuda_double::Stream> null_stream;
};
struct StreamObject {
  std::shared_ptr<cuda_double::Stream> stream;
};
struct EventObject {
  std::shared_ptr<cuda_double::Event> event;
};
struct GraphObject {
  std::shared_ptr<cuda_double::GraphBody> body;
};
struct LibraryObject {};
struct FunctionObject {
  std::uint64_t parameter_bytes;
  void (*run)(const void* parameter, unsigned warps);
};
struct UserObjectObject {
  void* argument;
  HostFunction destroy;
  std::atomic<unsigned> references;

  void release(unsigned count) {
    if (references.fetch_sub(count) > count) return;
    destroy(argument);
    delete this;
  }
};

}  // namespace leeway::device::cuda

namespace {

using namespace cuda_double;           // NOLINT(google-build-using-namespace)
using namespace leeway::device::cuda;  // NOLINT(google-build-using-namespace)
using StreamHandle = leeway::device::cuda::Stream;
using EventHandle = leeway::device::cuda::Event;

constexpr Code kNotFound = 500;
constexpr Code kNoMemory = 2;
constexpr Code kInvalidDevice = 101;
constexpr Code kCaptureForbids = 900;
constexpr unsigned kThreadsMax = 1024;  // in a block

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// An empty CUDA_VISIBLE_DEVICES hides all devices.
int devices_there() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible == '\0' ? 0 : number_of("CUDA_DOUBLE_DEVICES", 8);
}

struct Double {
  const int devices = devices_there();
  const pid_t process = ::getpid();
  Memory memory{devices};
  Machine machine{{static_cast<std::uint64_t>(number_of("CUDA_DOUBLE_SEED", 1)),
                   number_of("CUDA_DEVICE_MAX_CONNECTIONS", 8),
                   number_of("CUDA_DOUBLE_STREAM_WAITS", 1)}};
  std::vector<ContextObject> contexts;
  std::map<std::string, FunctionObject, std::less<>> kernels;

  Double() {
    for (int device = 0; device < devices; ++device)
      contexts.push_back({device, machine.make_stream(device)});
  }
};

std::atomic<Double*> the_double{nullptr};
thread_local bool calls_forbidden = false;
thread_local std::vector<Context> current;
thread_local int capture_mode = 0;

// Returns the double, or null in a forked child of the process that called cuInit. `name` is the
// function that is called.
Double* ready(const char* name) {
  if (calls_forbidden) fault("%s is called by a thread that must not call CUDA", name);
  Double* const made = the_double.load();
  return made != nullptr && made->process == ::getpid() ? made : nullptr;
}

// Returns true if calls that may wait for the device must fail: some thread captures in a mode that
// forbids them, and this thread's own mode is not relaxed.
bool forbidden_by_capture(Double& self) {
  return capture_mode != kCaptureRelaxed && self.machine.guarded();
}

std::shared_ptr<cuda_double::Stream> stream_of(StreamHandle handle) {
  if (handle != nullptr) return handle->stream;
  return current.empty() ? nullptr : current.back()->null_stream;
}

Code enqueue(const char* name, StreamHandle handle, Work work) {
  Double* const self = ready(name);
  if (self == nullptr) return kNotInitialized;
  const auto stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  self->machine.enqueue(stream, std::move(work));
  return kSuccess;
}

std::uint32_t* word_at(Double& self, Address address, const char* what) {
  return reinterpret_cast<std::uint32_t*>(self.memory.resolve(address, 4, what));
}

void copy_rows(Double& self, const Copy2D& copy) {
  for (std::size_t row = 0; row < copy.height; ++row) {
    std::memmove(self.memory.resolve(copy.target_device + row * copy.target_pitch, copy.width,
                                     "target of a copy"),
                 self.memory.resolve(copy.source_device + row * copy.source_pitch, copy.width,
                                     "source of a copy"),
                 copy.width);
  }
}

}  // namespace

#define ENTER(name)                  \
  Double* const self = ready(#name); \
  if (self == nullptr) return kNotInitialized

#pragma GCC visibility push(default)
extern "C" {

Code cuInit(unsigned) {
  if (calls_forbidden) fault("cuInit is called by a thread that must not call CUDA");
  static Double* const made = new Double;  // never destroyed, because its threads never end
  the_double = made;
  return made->process == ::getpid() ? kSuccess : kNotInitialized;
}

Code cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

Code cuGetErrorName(Code code, const char** name) {
  switch (code) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kNotInitialized:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      break;
    default:
      *name = "CUDA_ERROR";
  }
  return kSuccess;
}

Code cuGetErrorString(Code, const char** text) {
  *text = "said by the driver double";
  return kSuccess;
}

Code cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = self->devices;
  return kSuccess;
}

Code cuDeviceGet(Ordinal* device, int ordinal) {
  ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= self->devices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

Code cuDevicePrimaryCtxRetain(Context* context, Ordinal device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (device < 0 || device >= self->devices) return kInvalidDevice;
  *context = &self->contexts[static_cast<std::size_t>(device)];
  return kSuccess;
}

Code cuCtxGetCurrent(Context* context) {
  ENTER(cuCtxGetCurrent);
  *context = current.empty() ? nullptr : current.back();
  return kSuccess;
}

Code cuCtxPushCurrent(Context context) {
  ENTER(cuCtxPushCurrent);
  current.push_back(context);
  return kSuccess;
}

Code cuCtxPopCurrent(Context* context) {
  ENTER(cuCtxPopCurrent);
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

Code cuCtxGetDevice(Ordinal* device) {
  ENTER(cuCtxGetDevice);
  if (current.empty()) return kInvalidContext;
  *device = current.back()->device;
  return kSuccess;
}

Code cuMemAlloc(Address* memory, std::size_t bytes) {
  ENTER(cuMemAlloc);
  if (current.empty()) return kInvalidContext;
  if (bytes == 0) return kInvalidValue;
  if (forbidden_by_capture(*self)) return kCaptureForbids;
  *memory = self->memory.allocate(current.back()->device, bytes);
  return *memory == 0 ? kNoMemory : kSuccess;
}

// Waits for all work of the device, as CUDA's cuMemFree does.
Code cuMemFree(Address memory) {
  ENTER(cuMemFree);
  if (memory == 0) return kSuccess;
  if (forbidden_by_capture(*self)) return kCaptureForbids;
  const int device = self->memory.kind_of(memory).device;
  if (device < 0) return kInvalidValue;
  self->machine.synchronize(device);
  return self->memory.free(memory) ? kSuccess : kInvalidValue;
}

Code cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  ENTER(cuMemHostAlloc);
  if (current.empty()) return kInvalidContext;
  if (forbidden_by_capture(*self)) return kCaptureForbids;
  *memory = self->memory.allocate_host(bytes);
  return *memory == nullptr ? kNoMemory : kSuccess;
}

Code cuMemFreeHost(void* memory) {
  ENTER(cuMemFreeHost);
  if (current.empty()) return kInvalidContext;
  if (forbidden_by_capture(*self)) return kCaptureForbids;
  self->machine.synchronize(current.back()->device);
  return self->memory.free_host(memory) ? kSuccess : kInvalidValue;
}

Code cuMemHostGetDevicePointer(Address* mapped, void* memory, unsigned) {
  ENTER(cuMemHostGetDevicePointer);
  *mapped = reinterpret_cast<Address>(memory);
  return self->memory.kind_of(*mapped).type == kMemoryHost ? kSuccess : kInvalidValue;
}

Code cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address pointer) {
  ENTER(cuPointerGetAttributes);
  const Memory::Kind kind = self->memory.kind_of(pointer);
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == kAttributeMemoryType) {
      std::memcpy(values[i], &kind.type, sizeof kind.type);
    } else if (attributes[i] == kAttributeDeviceOrdinal) {
      std::memcpy(values[i], &kind.device, sizeof kind.device);
    } else if (attributes[i] == kAttributeIsManaged) {
      std::memset(values[i], 0, sizeof(unsigned));
    } else {
      return kInvalidValue;
    }
  }
  return kSuccess;
}

Code cuStreamCreateWithPriority(StreamHandle* stream, unsigned, int) {
  ENTER(cuStreamCreateWithPriority);
  if (current.empty()) return kInvalidContext;
  *stream = new StreamObject{self->machine.make_stream(current.back()->device)};
  return kSuccess;
}

Code cuStreamDestroy(StreamHandle stream) {
  ENTER(cuStreamDestroy);
  delete stream;  // work in its queue is still done
  return kSuccess;
}

Code cuStreamSynchronize(StreamHandle handle) {
  ENTER(cuStreamSynchronize);
  const auto stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  if (self->machine.capture_of(*stream) != nullptr) return kCaptureForbids;
  self->machine.synchronize(*stream);
  return kSuccess;
}

Code cuStreamWaitEvent(StreamHandle handle, EventHandle event, unsigned) {
  ENTER(cuStreamWaitEvent);
  const auto stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  return self->machine.wait(stream, event->event);
}

Code cuStreamWriteValue32(StreamHandle stream, Address word, std::uint32_t value, unsigned) {
  ENTER(cuStreamWriteValue32);
  if (!self->machine.stream_waits()) return kNotSupported;
  Work work;
  work.run = [self, word, value] {
    std::atomic_ref(*word_at(*self, word, "cuStreamWriteValue32"))
        .store(value, std::memory_order_release);
  };
  return enqueue("cuStreamWriteValue32", stream, std::move(work));
}

Code cuStreamWaitValue32(StreamHandle stream, Address word, std::uint32_t value, unsigned flags) {
  ENTER(cuStreamWaitValue32);
  if (!self->machine.stream_waits()) return kNotSupported;
  if (flags != kWaitGreaterOrEqual) return kInvalidValue;
  Work work;
  work.can_begin = [self, word, value] {
    const std::uint32_t now = std::atomic_ref(*word_at(*self, word, "cuStreamWaitValue32"))
                                  .load(std::memory_order_acquire);
    return static_cast<std::int32_t>(now - value) >= 0;
  };
  return enqueue("cuStreamWaitValue32", stream, std::move(work));
}

Code cuStreamGetCaptureInfo(StreamHandle handle, int* status, unsigned long* id, Graph* graph,
                            const GraphNode**, std::size_t*) {
  ENTER(cuStreamGetCaptureInfo);
  const auto stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  const std::shared_ptr<Capture> capture = self->machine.capture_of(*stream);
  *status = capture != nullptr ? kCaptureActive : kCaptureNone;
  if (capture == nullptr) return kSuccess;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) {
    if (capture->handle == nullptr)
      capture->handle = std::make_shared<GraphObject>(GraphObject{capture->body});
    *graph = static_cast<Graph>(capture->handle.get());
  }
  return kSuccess;
}

Code cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, capture_mode);
  return kSuccess;
}

Code cuLaunchHostFunc(StreamHandle stream, HostFunction function, void* argument) {
  Work work;
  work.run = [function, argument] { function(argument); };
  work.by_host = true;
  return enqueue("cuLaunchHostFunc", stream, std::move(work));
}

Code cuEventCreate(EventHandle* event, unsigned) {
  ENTER(cuEventCreate);
  if (current.empty()) return kInvalidContext;
  *event = new EventObject{std::make_shared<cuda_double::Event>()};
  return kSuccess;
}

Code cuEventRecord(EventHandle event, StreamHandle handle) {
  ENTER(cuEventRecord);
  const auto stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  self->machine.record(event->event, stream);
  return kSuccess;
}

Code cuEventDestroy(EventHandle event) {
  ENTER(cuEventDestroy);
  delete event;
  return kSuccess;
}

Code cuMemcpyAsync(Address target, Address source, std::size_t bytes, StreamHandle stream) {
  ENTER(cuMemcpyAsync);
  Work work;
  work.run = [self, target, source, bytes] {
    std::memmove(self->memory.resolve(target, bytes, "target of a copy"),
                 self->memory.resolve(source, bytes, "source of a copy"), bytes);
  };
  return enqueue("cuMemcpyAsync", stream, std::move(work));
}

Code cuMemcpy2DAsync(const Copy2D* copy, StreamHandle stream) {
  ENTER(cuMemcpy2DAsync);
  if (copy->source_type != kMemoryUnified || copy->target_type != kMemoryUnified ||
      copy->source_pitch < copy->width || copy->target_pitch < copy->width || copy->source_x != 0 ||
      copy->source_y != 0 || copy->target_x != 0 || copy->target_y != 0)
    return kInvalidValue;
  Work work;
  work.run = [self, plane = *copy] { copy_rows(*self, plane); };
  return enqueue("cuMemcpy2DAsync", stream, std::move(work));
}

Code cuLibraryLoadData(Library* library, const void* image, int*, void**, unsigned, int*, void**,
                       unsigned) {
  ENTER(cuLibraryLoadData);
  if (image == nullptr) return kInvalidValue;
  static LibraryObject all;
  *library = &all;
  return kSuccess;
}

Code cuLibraryGetKernel(Function* kernel, Library, const char* name) {
  ENTER(cuLibraryGetKernel);
  const auto found = self->kernels.find(std::string_view(name));
  if (found == self->kernels.end()) return kNotFound;
  *kernel = &found->second;
  return kSuccess;
}

Code cuLaunchKernel(Function function, unsigned grid, unsigned grid_y, unsigned grid_z,
                    unsigned block, unsigned block_y, unsigned block_z, unsigned shared,
                    StreamHandle stream, void** parameters, void** extra) {
  constexpr unsigned kLanes = 32;
  if (grid == 0 || grid_y * grid_z * block_y * block_z != 1 || block % kLanes != 0 ||
      block > kThreadsMax || shared != 0 || extra != nullptr)
    return kInvalidValue;
  const auto* const parameter = static_cast<const std::byte*>(parameters[0]);
  Work work;
  work.run = [function, warps = grid * (block / kLanes),
              copy = std::vector(parameter, parameter + function->parameter_bytes)] {
    function->run(copy.data(), warps);
  };
  return enqueue("cuLaunchKernel", stream, std::move(work));
}

Code cuUserObjectCreate(UserObject* object, void* argument, HostFunction destroy,
                        unsigned references, unsigned flags) {
  ENTER(cuUserObjectCreate);
  if (flags != kUserObjectNoSync || references == 0) return kInvalidValue;
  *object = new UserObjectObject{argument, destroy, {references}};
  return kSuccess;
}

Code cuUserObjectRelease(UserObject object, unsigned count) {
  ENTER(cuUserObjectRelease);
  object->release(count);
  return kSuccess;
}

Code cuGraphRetainUserObject(Graph graph, UserObject object, unsigned count, unsigned flags) {
  ENTER(cuGraphRetainUserObject);
  if (flags != kGraphTakesReference) object->references += count;
  graph->body->at_end.emplace_back([object, count] { object->release(count); });
  return kSuccess;
}

// The following functions are called by programs, and not by Leeway.

Code cuStreamBeginCapture(StreamHandle stream, int mode) {
  ENTER(cuStreamBeginCapture);
  if (stream == nullptr) return kCaptureForbids;
  return self->machine.begin_capture(stream->stream, mode);
}

Code cuStreamEndCapture(StreamHandle stream, Graph* graph) {
  ENTER(cuStreamEndCapture);
  std::shared_ptr<GraphBody> body;
  const Code code = self->machine.end_capture(stream->stream, body);
  *graph = code == kSuccess ? new GraphObject{std::move(body)} : nullptr;
  return code;
}

// The executable graph shares the body of the graph, since programs cannot change it.
Code cuGraphInstantiate(Graph* executable, Graph graph, unsigned long long) {
  ENTER(cuGraphInstantiate);
  *executable = new GraphObject{graph->body};
  return kSuccess;
}

Code cuGraphLaunch(Graph executable, StreamHandle stream) {
  ENTER(cuGraphLaunch);
  Work work;
  work.graph = std::make_shared<GraphRun>();
  work.graph->body = executable->body;
  return enqueue("cuGraphLaunch", stream, std::move(work));
}

Code cuGraphDestroy(Graph graph) {
  ENTER(cuGraphDestroy);
  delete graph;
  return kSuccess;
}

Code cuGraphExecDestroy(Graph executable) {
  ENTER(cuGraphExecDestroy);
  delete executable;
  return kSuccess;
}

Code cuCtxSynchronize() {
  ENTER(cuCtxSynchronize);
  if (current.empty()) return kInvalidContext;
  self->machine.synchronize(current.back()->device);
  return kSuccess;
}

void cuda_double_configure(const CudaDoubleSettings* settings) {
  Double* const self = ready("cuda_double_configure");
  if (self != nullptr) self->machine.configure(*settings);
}

Code cuda_double_launch(StreamHandle stream, void (*kernel)(void*), void* argument) {
  Work work;
  work.run = [kernel, argument] { kernel(argument); };
  return enqueue("a kernel", stream, std::move(work));
}

void* cuda_double_alias(Address memory, std::uint64_t bytes) {
  return the_double.load()->memory.resolve(memory, bytes, "a kernel");
}

void cuda_double_register_kernel(const char* name, std::uint64_t parameter_bytes,
                                 void (*run)(const void* parameter, unsigned warps)) {
  Double* const self = ready("cuda_double_register_kernel");
  if (self != nullptr) self->kernels[name] = {parameter_bytes, run};
}

void cuda_double_forbid_calls() {
  calls_forbidden = true;
}

Code cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t, int*) {
  if (version < 12000) return kInvalidValue;
  static const struct {
    std::string_view name;
    void* function;
  } kFunctions[] = {
#define ENTRY(name, ...) {#name, reinterpret_cast<void*>(&name)},
      LEEWAY_CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
  };
  for (const auto& one : kFunctions) {
    if (one.name != name) continue;
    *function = one.function;
    return kSuccess;
  }
  *function = nullptr;
  return kNotFound;
}

}  // extern "C"
#pragma GCC visibility pop
