// The kernels of src/interop/device_codec as functions of the host: the same headers, compiled by
// the host's compiler. They work on host memory.
#pragma once

#include <string>
#include <vector>

#include "device_codec/jobs.h"

namespace leeway::device_codec {

// Like Kernels::encode() and its neighbours, but done when they return. Warps run one after the
// other, each with packets of its own.
void encode_on_host(const codec::Format& format, EncodeJob job, unsigned warps = 3);
void sum_on_host(const codec::Format& format, SumJob job, unsigned warps = 3);
void rotate_on_host(const RotateJob& job, unsigned warps = 3);
void unrotate_on_host(const RotateJob& job, unsigned warps = 3);

// Registers the kernels with the driver double, under their own names. Addresses in jobs are then
// those of the double's devices. `library` is the result of dlopen(). Returns false if it is not
// the double.
bool register_host_kernels(void* library);

}  // namespace leeway::device_codec
