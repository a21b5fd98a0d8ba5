// nccl_conformance --device: the unchanged cases, with their buffers in device memory.
//
// Calls that take buffers are wrapped by the linker. A wrapper copies what the case has in host
// memory to a device, calls with device pointers and a stream of its own, and copies back. Where
// the call would block on host memory, the wrapper waits for the stream, and returns the
// communicator's asynchronous error.
#pragma once

#include <cstddef>
#include <string>

namespace conformance {

// From now on puts buffers into device memory. Returns why there is no driver; the text is empty on
// success.
std::string use_devices();
bool on_devices();
// Puts the calling thread's communicators on the device of this rank. If there are fewer devices
// than ranks, ranks share them.
void use_device_of_rank(int rank);

// The number of devices. It is 8 if buffers are in host memory, and devices are only numbers.
int device_count();

// Write and read memory that NCCL allocated, on a device or on the host.
void write_memory(void* to, const void* from, std::size_t bytes);
void read_memory(void* to, const void* from, std::size_t bytes);

}  // namespace conformance
