#include "device_codec/pinned_memory.h"

namespace leeway::device_codec {

void PinnedMemory::free() {
  if (memory_ == nullptr) return;
  const device::ContextScope scope(driver_, context_);
  (void)driver_.call.cuMemFreeHost(memory_);
  memory_ = mapped_ = nullptr;
  bytes_ = 0;
}

Status PinnedMemory::resize(std::size_t bytes) {
  if (bytes <= bytes_) return Status();
  free();
  const device::ContextScope scope(driver_, context_);
  void* memory = nullptr;
  device::cuda::Address mapped = 0;
  auto code = driver_.call.cuMemHostAlloc(
      &memory, bytes, device::cuda::kHostPortable | device::cuda::kHostDeviceMapped);
  if (code == device::cuda::kSuccess)
    code = driver_.call.cuMemHostGetDevicePointer(&mapped, memory, 0);
  if (code != device::cuda::kSuccess) {
    return Status::error(StatusCode::kResourceExhausted, "%zu bytes of pinned memory: %s", bytes,
                         driver_.error("cuMemHostAlloc", code).c_str());
  }
  memory_ = static_cast<std::byte*>(memory);
  mapped_ = reinterpret_cast<std::byte*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  bytes_ = bytes;
  return Status();
}

}  // namespace leeway::device_codec
