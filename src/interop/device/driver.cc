#include "device/driver.h"

#include <dlfcn.h>

#include <memory>

namespace leeway::device {
namespace {

// cuGetProcAddress_v2.
using Lookup = cuda::Code (*)(const char* name, void** function, int version, std::uint64_t flags,
                              int* found);

Status none(const char* why) {
  return Status::error(StatusCode::kUnavailable,
                       "no CUDA driver (%.200s): all memory is taken for host memory", why);
}

}  // namespace

Status Driver::load(const char* library) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);  // never closed: it has threads
  if (handle == nullptr) return none(::dlerror());
  const auto lookup = reinterpret_cast<Lookup>(::dlsym(handle, "cuGetProcAddress_v2"));
  if (lookup == nullptr) return none("it is older than CUDA 12.0, driver 525");
  const char* missing = nullptr;
  const auto find = [&](const char* name) {
    void* function = nullptr;
    int found = 0;
    if (lookup(name, &function, cuda::kVersion, 0, &found) != cuda::kSuccess) function = nullptr;
    if (function == nullptr && missing == nullptr) missing = name;
    return function;
  };
#define LEEWAY_CUDA_FIND(name, parameters) \
  call.name = reinterpret_cast<decltype(call.name)>(find(#name));
  LEEWAY_CUDA_FUNCTIONS(LEEWAY_CUDA_FIND)
#undef LEEWAY_CUDA_FIND
  if (missing != nullptr) {
    const std::string text = std::string("it has no ") + missing;
    return none(text.c_str());
  }
  if (const cuda::Code code = call.cuInit(0); code != cuda::kSuccess)
    return none(error("cuInit", code).c_str());
  (void)call.cuDriverGetVersion(&version_);
  if (call.cuDeviceGetCount(&devices_) != cuda::kSuccess || devices_ < 1)
    return none("it has no device; is CUDA_VISIBLE_DEVICES empty?");
  return Status();
}

Result<const Driver*> Driver::open(const char* library) {
  auto driver = std::unique_ptr<Driver>(new Driver);
  if (Status status = driver->load(library); !status.ok()) return status;
  return static_cast<const Driver*>(driver.release());  // lives as long as the process
}

Status Driver::error(const char* what, cuda::Code code) const {
  const char* name = "unknown error";
  const char* text = "";
  (void)call.cuGetErrorName(code, &name);
  (void)call.cuGetErrorString(code, &text);
  return Status::error(StatusCode::kUnavailable, "%s: %s (%s)", what, name, text);
}

PointerKind Driver::kind_of(const void* pointer) const {
  int attributes[] = {cuda::kAttributeMemoryType, cuda::kAttributeIsManaged,
                      cuda::kAttributeDeviceOrdinal};
  unsigned type = 0;
  unsigned managed = 0;  // the driver writes an int or a bool
  int ordinal = -1;
  void* values[] = {&type, &managed, &ordinal};
  const cuda::Code code =
      call.cuPointerGetAttributes(3, attributes, values, reinterpret_cast<cuda::Address>(pointer));
  // The call fails if there is no context. No memory can be CUDA's then.
  if (code != cuda::kSuccess || type == 0) return {};
  using Where = PointerKind::Where;
  if (managed != 0) return {Where::managed, ordinal};
  return {type == cuda::kMemoryHost ? Where::pinned : Where::device, ordinal};
}

ContextScope::ContextScope(const Driver& driver, cuda::Context context) : driver_(driver) {
  (void)driver_.call.cuCtxPushCurrent(context);
  (void)driver_.call.cuThreadExchangeStreamCaptureMode(&capture_mode_);
}

ContextScope::~ContextScope() {
  (void)driver_.call.cuThreadExchangeStreamCaptureMode(&capture_mode_);
  cuda::Context popped = nullptr;
  (void)driver_.call.cuCtxPopCurrent(&popped);
}

int current_device(const Driver& driver) {
  cuda::Context context = nullptr;
  cuda::Ordinal ordinal = 0;
  const bool found = driver.call.cuCtxGetCurrent(&context) == cuda::kSuccess &&
                     context != nullptr && driver.call.cuCtxGetDevice(&ordinal) == cuda::kSuccess;
  return found ? ordinal : 0;
}

Result<DeviceContext> context_of(const Driver& driver, int ordinal) {
  cuda::Context context = nullptr;
  const bool has_current =
      driver.call.cuCtxGetCurrent(&context) == cuda::kSuccess && context != nullptr;
  const int current = current_device(driver);
  if (ordinal < 0) ordinal = current;
  if (has_current && ordinal == current) return DeviceContext{context, ordinal};
  cuda::Ordinal device = 0;
  if (const cuda::Code code = driver.call.cuDeviceGet(&device, ordinal); code != cuda::kSuccess)
    return driver.error("cuDeviceGet", code);
  if (const cuda::Code code = driver.call.cuDevicePrimaryCtxRetain(&context, device);
      code != cuda::kSuccess)
    return driver.error("cuDevicePrimaryCtxRetain", code);
  return DeviceContext{context, ordinal};
}

}  // namespace leeway::device
