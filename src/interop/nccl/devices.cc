#include "interop/nccl/devices.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/fork.h"
#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"

namespace leeway::nccl {
namespace {

struct Cuda {
  const std::uint32_t generation = fork_generation();
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

class Codecs {
 public:
  // The driver is never closed: streams hold its kernels.
  static Codecs& of(const device::Driver& driver) {
    static auto* const loaded = new Codecs(driver);
    return *loaded;
  }

  const device_codec::Kernels* find(const device::Lane& lane, const codec::Format& format) {
    if (!kernels_.ok()) return nullptr;
    const Key key{lane.device().context(), format.options.codec, format.stochastic()};
    {
      const std::lock_guard lock(mutex_);
      const auto found = ready_.find(key);
      if (found != ready_.end()) return found->second ? &*kernels_ : nullptr;
    }
    // Loads without the mutex. Loading may wait for a stream, and the stream for a thread that
    // wants the mutex. Loading twice does no harm.
    const Status status = kernels_->load_now(format, {.stream = lane.inputs()});
    if (!status.ok()) say(status);
    const std::lock_guard lock(mutex_);
    ready_[key] = status.ok();
    return status.ok() ? &*kernels_ : nullptr;
  }

 private:
  using Key = std::tuple<device::cuda::Context, Codec, bool>;

  explicit Codecs(const device::Driver& driver) : kernels_(device_codec::Kernels::load(driver)) {
    if (kernels_.ok()) {
      info("codecs of device memory run on the device");
    } else {
      say(kernels_.status());
    }
  }
  static void say(const Status& why) {
    info("codecs of device memory run on the processor: " + std::string(why.text()));
  }

  const Result<device_codec::Kernels> kernels_;
  std::mutex mutex_;
  std::map<Key, bool> ready_;
};

// Asks the kernel whether the processor can read the byte at `memory`.
bool readable(const void* memory) {
  char byte = 0;
  iovec to{&byte, 1};
  iovec from{const_cast<void*>(memory), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

Code find_without_driver(const Operation& operation, std::string_view title) {
  // Programs for the CPU pass no stream, and skip the check.
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
  const bool here = opened.stager && opened.generation == fork_generation();
  return here ? &*opened.stager : nullptr;
}

const device_codec::Kernels* codec_kernels(const device::Lane& lane, const codec::Format& format) {
  const device::Driver& driver = stager()->driver();
  // In this scope CUDA lets this thread load kernels while another thread captures a graph.
  const device::ContextScope scope(driver, lane.device().context());
  return Codecs::of(driver).find(lane, format);
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
