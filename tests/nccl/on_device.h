// nccl_conformance --device: the cases as they stand, their buffers in device memory.
//
// Calls that take buffers are wrapped by the linker. A wrapper copies what the case has in host
// memory to a device, calls with device pointers and a stream of its own, and copies back. Where
// the call would block on host memory, the wrapper waits for the stream, and answers what the
// communicator's asynchronous error says then.
#pragma once

#include <cstddef>
#include <string>

namespace conformance {

// Puts buffers into device memory from now on. Returns why there is no driver; the text is empty on
// success.
std::string use_devices();
bool on_devices();
// The calling thread's communicators are on this device, or, where there are fewer, share one.
void use_device_of_rank(int rank);

// The number of devices. It is 8 if buffers are in host memory, and devices are only numbers.
int device_count();

// Memory that NCCL made, wherever that is.
void write_memory(void* to, const void* from, std::size_t bytes);
void read_memory(void* to, const void* from, std::size_t bytes);

}  // namespace conformance
