#include "device/stager.h"

#include "device/capture.h"
#include "device/enqueue.h"

namespace leeway::device {

Result<std::shared_ptr<Lane>> Stager::open(int ordinal) {
  if (Status status = progress_.start(); !status.ok()) return status;
  const auto context = context_of(driver_, ordinal);
  if (!context.ok()) return context.status();
  const std::lock_guard lock(mutex_);
  const ContextScope scope(driver_, context->context);
  auto& device = devices_[context->context];
  if (device == nullptr) {
    auto made = std::make_unique<Device>(driver_, *context);
    if (Status status = made->set_up(ring_bytes_); !status.ok()) return status;
    device = std::move(made);
  }
  const auto streams = device->take_streams();
  if (!streams.ok()) return streams.status();
  return std::make_shared<Lane>(*device, streams->inputs, streams->captured);
}

Result<bool> Stager::enqueue(std::span<const Transfer> transfers) {
  const auto captured = Capture::of(driver_, transfers);
  if (!captured.ok()) return captured.status();
  const Status status = *captured ? Capture(*this).run(transfers) : Enqueue(*this).run(transfers);
  if (status.ok()) return *captured;
  if (status.code() != StatusCode::kUnsupported)
    for (const Transfer& one : transfers) end(*one.lane);
  return status;
}

}  // namespace leeway::device
