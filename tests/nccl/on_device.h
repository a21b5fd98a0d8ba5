// nccl_conformance --device: runs the unchanged cases with buffers in device memory.
//
// The linker wraps all calls with buffers. A wrapper copies the case's host memory to a device,
// makes the call with device pointers on a stream of its own, and copies the result back. If a call
// on host memory would block, the wrapper waits for the stream and returns the communicator's
// asynchronous error.
#pragma once

#include <cstddef>
#include <string>

namespace conformance {

// Puts buffers into device memory from now on. If that is impossible, returns a text that says why.
std::string use_devices();
bool on_devices();
// Makes the calling thread's communicators use the device of this rank. If devices are too few,
// ranks share them.
void use_device_of_rank(int rank);

// Returns the number of devices. Without --device it is 8, because devices are only numbers then.
int device_count();

// Copy to and from memory that NCCL allocated, on a device or on the host.
void write_memory(void* to, const void* from, std::size_t bytes);
void read_memory(void* to, const void* from, std::size_t bytes);

}  // namespace conformance
