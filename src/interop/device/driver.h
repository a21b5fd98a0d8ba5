// The CUDA driver, if there is one: libcuda.so.1 by dlopen, its functions by cuGetProcAddress.
// Leeway never uses the CUDA runtime, because programs bring their own version of it.
#pragma once

#include <string>

#include "device/cuda_abi.h"
#include "leeway/status.h"

namespace leeway::device {

// Kind of the memory at a pointer, as far as the driver knows.
struct PointerKind {
  enum class Where {
    unknown,  // the driver does not know the memory: pageable host memory, or no memory at all
    pinned,   // host memory that the driver knows
    managed,  // moves between host and devices
    device,
  };
  Where where = Where::unknown;
  int ordinal = -1;  // the device, unless `where` is unknown

  // Returns whether work on a stream may read and write the memory.
  bool on_streams() const { return where != Where::unknown; }
};

class Driver {
 public:
  // Opens and initialises the driver. Returns kUnavailable if there is none, or if it has no
  // device. The text says which, and that all memory counts as host memory then.
  static Result<const Driver*> open(const char* library = "libcuda.so.1");

  PointerKind kind_of(const void* pointer) const;
  // Returns kUnavailable with `what`, and CUDA's own name and sentence for the code.
  Status error(const char* what, cuda::Code code) const;
  int devices() const { return devices_; }
  // As cuDriverGetVersion: 12040 for 12.4.
  int version() const { return version_; }

  // The functions, by their names in cuda.h without "cu".
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define LEEWAY_CUDA_MEMBER(name, parameters) cuda::Code(*name) parameters = nullptr;
  struct Functions {
    using Code = cuda::Code;
    using Ordinal = cuda::Ordinal;
    using Address = cuda::Address;
    using Context = cuda::Context;
    using Stream = cuda::Stream;
    using Event = cuda::Event;
    using Graph = cuda::Graph;
    using GraphNode = cuda::GraphNode;
    using UserObject = cuda::UserObject;
    using Library = cuda::Library;
    using Function = cuda::Function;
    using HostFunction = cuda::HostFunction;
    using Copy2D = cuda::Copy2D;
    LEEWAY_CUDA_FUNCTIONS(LEEWAY_CUDA_MEMBER)
  } call;
#undef LEEWAY_CUDA_MEMBER

 private:
  Driver() = default;
  Status load(const char* library);

  int devices_ = 0;
  int version_ = 0;
};

// Makes a context current on this thread, for the life of the object. Meanwhile this thread may
// make calls, such as allocating memory, that CUDA otherwise forbids while any thread captures a
// graph.
class ContextScope {
 public:
  ContextScope(const Driver& driver, cuda::Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Driver& driver_;
  int capture_mode_ = cuda::kCaptureRelaxed;
};

// The context in which this thread works: its current one if that is on the device, else the
// device's primary context. Ordinal -1 means the current device, or device 0.
struct DeviceContext {
  cuda::Context context = nullptr;
  int ordinal = 0;
};
Result<DeviceContext> context_of(const Driver& driver, int ordinal);
// Returns the device that is current on this thread, or 0 if there is none.
int current_device(const Driver& driver);

}  // namespace leeway::device
