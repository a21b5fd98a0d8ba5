// The kernels of src/interop/device_codec as host functions on host memory: the same headers,
// compiled by the host's compiler.
#pragma once

#include <string>
#include <vector>

#include "device_codec/jobs.h"

namespace leeway::device_codec {

// The same jobs as those of Kernels::encode(), sum(), rotate() and unrotate(), but done when the
// call returns. Warps run one after the other, each on packets of its own.
void encode_on_host(const codec::Format& format, EncodeJob job, unsigned warps = 3);
void sum_on_host(const codec::Format& format, SumJob job, unsigned warps = 3);
void rotate_on_host(const RotateJob& job, unsigned warps = 3);
void unrotate_on_host(const RotateJob& job, unsigned warps = 3);

// Registers the kernels with the CUDA double under the names that the device's kernels have. Their
// jobs then have addresses of the double's devices. Returns false if `library`, from dlopen(), is
// not the double.
bool register_host_kernels(void* library);

}  // namespace leeway::device_codec
