#include "device/signal.h"

#include <algorithm>
#include <cstddef>
#include <new>

namespace leeway::device {
namespace {

// Number of lines that are made at a time: a page.
constexpr std::size_t kLines = 64;

}  // namespace

Result<Pinned> allocate_pinned(const Driver& driver, std::size_t bytes) {
  Pinned out;
  out.bytes = bytes;
  void* memory = nullptr;
  cuda::Code code =
      driver.call.cuMemHostAlloc(&memory, bytes, cuda::kHostPortable | cuda::kHostDeviceMapped);
  if (code == cuda::kSuccess) code = driver.call.cuMemHostGetDevicePointer(&out.mapped, memory, 0);
  if (code != cuda::kSuccess) {
    return Status::error(StatusCode::kResourceExhausted,
                         "%zu bytes of pinned memory for staging: %s; see ulimit -l", bytes,
                         driver.error("cuMemHostAlloc", code).c_str());
  }
  out.memory = static_cast<std::byte*>(memory);
  return out;
}

Status Signals::grow() {
  auto page = allocate_pinned(driver_, kLines * sizeof(Words));
  if (!page.ok()) return page.status();
  for (std::size_t i = 0; i < kLines; ++i) {
    auto* const words = new (page->memory + i * sizeof(Words)) Words;
    free_.emplace_back(words, page->mapped + i * sizeof(Words), 0);
  }
  return Status();
}

Result<Signal> Signals::take() {
  if (free_.empty()) {
    const auto settled = std::partition(in_use_.begin(), in_use_.end(),
                                        [](const Signal& one) { return !one.settled(); });
    free_.insert(free_.end(), settled, in_use_.end());
    in_use_.erase(settled, in_use_.end());
  }
  if (free_.empty()) {
    if (Status status = grow(); !status.ok()) return status;
  }
  const Signal last = free_.back();
  free_.pop_back();
  const Signal next(last.words(), last.mapped(), last.value() + Signal::kStride);
  in_use_.push_back(next);
  return next;
}

}  // namespace leeway::device
