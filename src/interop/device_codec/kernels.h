// Codecs on a device: kernels that encode, decode and sum packets with the bytes and bits of
// src/math/codec, in the order of a stream.
//
// Work is only enqueued: the memory of a job must stay until its stream has done it. Addresses are
// those of device memory, or those by which the device sees pinned host memory.
#pragma once

#include <array>

#include "codec/codec.h"
#include "device/driver.h"
#include "device_codec/image.h"
#include "device_codec/jobs.h"

namespace leeway::device_codec {

// Parameters of one launch, on a stream of the current context.
struct Launch {
  device::cuda::Stream stream = nullptr;
  // Limit on the multiprocessors of the device that the launch occupies. Training needs the others.
  unsigned multiprocessors = 12;
};

class Kernels {
 public:
  // Loads an image into the driver. Returns kUnavailable if the build has none, or none for this
  // device.
  static Result<Kernels> load(const device::Driver& driver, ByteSpan image = built_image());

  // Returns true if the format has kernels. Rotation is a step of its own, before encode() and
  // after sum(). A format that is the tensor's own type needs no kernel, because encoding is a
  // copy.
  static bool supports(const codec::Format& format);

  // The functions below return kUnsupported without kernels, kUnavailable if CUDA refuses the
  // launch.

  // Enqueues a job, after setting its format.
  Status encode(const codec::Format& format, EncodeJob job, const Launch& launch) const;
  // Enqueues a job, after setting its type to the format's.
  Status sum(const codec::Format& format, SumJob job, const Launch& launch) const;
  // Like encode() and sum(), for jobs that are written later. The code that writes the jobs sets
  // their format and type.
  Status encode_listed(const codec::Format& format, const JobList<EncodeJob>& jobs,
                       const Launch& launch) const;
  Status sum_listed(const codec::Format& format, const JobList<SumJob>& jobs,
                    const Launch& launch) const;
  // Makes the driver load the format's kernels on the current context, by launches that do nothing.
  // The first launch of a kernel may wait for all streams. Inside a call that would be a deadlock:
  // a stream may itself wait for the calling thread.
  Status load_now(const codec::Format& format, const Launch& launch) const;
  // Enqueue a rotation or its inverse. Packets must be cut as for encode(); packets.packet_bytes is
  // ignored.
  Status rotate(const RotateJob& job, const Launch& launch) const;
  Status unrotate(const RotateJob& job, const Launch& launch) const;

 private:
  struct OfCodec {
    device::cuda::Function nearest = nullptr;
    device::cuda::Function stochastic = nullptr;
    device::cuda::Function sum = nullptr;
  };

  explicit Kernels(const device::Driver& driver) : driver_(&driver) {}
  Status find(ByteSpan image);
  device::cuda::Function encoder(const codec::Format& format) const;
  template <typename Parameter>
  Status enqueue(device::cuda::Function kernel, Parameter parameter, std::uint32_t packets,
                 unsigned warps, const Launch& launch) const;

  const device::Driver* driver_;
  std::array<OfCodec, kCodecCount> codecs_;
  device::cuda::Function rotate_ = nullptr;
  device::cuda::Function unrotate_ = nullptr;
};

}  // namespace leeway::device_codec
