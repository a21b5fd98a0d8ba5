// GPUs as the drop-in sees them: whether there is a CUDA driver, and what memory a call's buffers
// are in.
#pragma once

#include <string>

#include "device/stager.h"
#include "device_codec/kernels.h"
#include "interop/nccl/codes.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

// Returns the process's stager, or null if there is no CUDA driver: then all memory is host memory.
// The first call opens the driver. A child that is forked later gets null, as CUDA does not outlive
// a fork.
device::Stager* stager();
// Returns the reason why stager() is null.
std::string why_no_driver();
// Returns the kernels that encode and sum in this format, ready on the lane's device, or null if
// the driver cannot load them. The first call logs at INFO whether codecs run on the device. Needs
// a stager().
const device_codec::Kernels* codec_kernels(const device::Lane& lane, const codec::Format& format);
// Returns the calling thread's CUDA device; 0 without a driver.
int current_device();

// Sets operation.memory from the buffers. Returns kInvalidArgument if they are of two kinds, or if
// the call has a stream, there is no driver, and the processor cannot read a buffer.
Code find_memory(Operation& operation, std::string_view title);

}  // namespace leeway::nccl
