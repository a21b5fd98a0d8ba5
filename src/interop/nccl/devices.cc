#include "interop/nccl/devices.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "driving/fork.h"
#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"

namespace leeway::nccl {
namespace {

struct Cuda {
  const std::uint32_t generation = driving::fork_generation();
  const Result<const device::Driver*> driver = device::Driver::open();
  std::optional<device::Stager> stager;

  Cuda() {
    if (driver.ok()) stager.emplace(**driver, settings().staging_mib << 20);
    if (!driver.ok()) info(driver.status().text());
  }
};

Cuda& cuda() {
  static auto* const opened = new Cuda;  // never destroyed: streams write to its memory
  return *opened;
}

struct Codecs {
  Result<device_codec::Kernels> kernels;

  explicit Codecs(const device::Driver& driver) : kernels(device_codec::Kernels::load(driver)) {
    const std::string why(kernels.ok() ? "" : kernels.status().text());
    info(kernels.ok() ? "codecs of device memory run on the device"
                      : "codecs of device memory run on the processor: " + why);
  }
};

// Whether the processor could read it, asked of the kernel.
bool readable(const void* memory) {
  char byte = 0;
  iovec to{&byte, 1};
  iovec from{const_cast<void*>(memory), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

Code find_without_driver(const Operation& operation, std::string_view title) {
  // Programs of the CPU have no streams, and pay nothing for this.
  if (operation.stream == nullptr || operation.count == 0) return kSuccess;
  for (const void* const memory : {operation.send, static_cast<const void*>(operation.receive)}) {
    if (memory == nullptr || readable(memory)) continue;
    return failed_with(kInvalidArgument,
                       "%.*s : the buffer at %p is no memory of the host; is it a GPU's? %s. "
                       "Install the driver, or mount it into the container (--gpus)",
                       static_cast<int>(title.size()), title.data(), memory,
                       why_no_driver().c_str());
  }
  return kSuccess;
}

}  // namespace

device::Stager* stager() {
  Cuda& opened = cuda();
  const bool here = opened.stager && opened.generation == driving::fork_generation();
  return here ? &*opened.stager : nullptr;
}

const device_codec::Kernels* codec_kernels() {
  device::Stager* const opened = stager();
  if (opened == nullptr) return nullptr;
  static const auto* const codecs = new Codecs(opened->driver());  // streams hold its kernels
  return codecs->kernels.ok() ? &*codecs->kernels : nullptr;
}

std::string why_no_driver() {
  const Cuda& opened = cuda();
  if (!opened.driver.ok()) return std::string(opened.driver.status().text());
  return "CUDA was opened before this process was forked";
}

int current_device() {
  const device::Stager* const opened = stager();
  return opened == nullptr ? 0 : device::current_device(opened->driver());
}

Code find_memory(Operation& operation, std::string_view title) {
  const device::Stager* const opened = stager();
  if (opened == nullptr) return find_without_driver(operation, title);
  if (operation.count == 0) {
    operation.memory = Operation::Memory::any;
    return kSuccess;
  }
  bool streams = false;
  bool host = false;
  const auto look = [&](const void* memory) {
    if (memory == nullptr) return;
    (opened->driver().kind_of(memory).on_streams() ? streams : host) = true;
  };
  look(operation.send);
  look(operation.receive);
  if (streams && host) {
    return failed_with(kInvalidArgument,
                       "%.*s : one buffer is in device memory, the other in pageable host memory; "
                       "streams reach that by cudaHostRegister() or cudaMallocHost()",
                       static_cast<int>(title.size()), title.data());
  }
  operation.memory = streams ? Operation::Memory::streams : Operation::Memory::host;
  return kSuccess;
}

}  // namespace leeway::nccl
