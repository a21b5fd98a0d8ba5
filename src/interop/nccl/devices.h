// GPUs as the drop-in sees them: whether there is a CUDA driver, and whose memory a call's is.
#pragma once

#include <string>

#include "device/stager.h"
#include "device_codec/kernels.h"
#include "interop/nccl/codes.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

// Null: no driver, and all memory is host memory. Opened by the first call; a fork's child has
// none, as CUDA does not outlive a fork.
device::Stager* stager();
// Why there is none.
std::string why_no_driver();
// Kernels that encode and sum in this format, ready on the lane's device. Null: the driver cannot
// load them. The first call logs which.
const device_codec::Kernels* codec_kernels(const device::Lane& lane, const codec::Format& format);
// The calling thread's device; 0 without a driver.
int current_device();

// Fills in whether the operation is one of streams. kInvalidArgument: its buffers are of two kinds;
// or there is no driver, and a buffer is no memory that the processor can read.
Code find_memory(Operation& operation, std::string_view title);

}  // namespace leeway::nccl
