#include "device_codec/kernels.h"

#include <algorithm>
#include <string>

#include "base/contracts.h"
#include "device_codec/formats.h"

namespace leeway::device_codec {
namespace {

bool has_kernels(Codec codec) {
  switch (codec) {
#define LEEWAY_CASE(name) case Codec::name:
    LEEWAY_DEVICE_CODECS(LEEWAY_CASE)
#undef LEEWAY_CASE
    return true;
    default:
      return false;
  }
}

Status without_kernels(const codec::Format& format) {
  return Status::error(StatusCode::kUnsupported, "no kernel encodes %s as %.100s",
                       to_string(format.element).data(), to_string(format.options).c_str());
}

}  // namespace

Result<Kernels> Kernels::load(const device::Driver& driver, ByteSpan image) {
  if (image.empty()) {
    return Status::error(StatusCode::kUnavailable,
                         "no kernels of codecs: Leeway was built where no nvcc was found");
  }
  Kernels kernels(driver);
  if (Status status = kernels.find(image); !status.ok()) return status;
  return kernels;
}

Status Kernels::find(ByteSpan image) {
  device::cuda::Library library = nullptr;  // never unloaded: streams may hold its kernels
  if (const auto code = driver_->call.cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0,
                                                        nullptr, nullptr, 0);
      code != device::cuda::kSuccess)
    return driver_->error("the kernels of codecs", code);
  Status status;
  const auto find = [&](const std::string& name) {
    device::cuda::Function kernel = nullptr;
    const auto code = driver_->call.cuLibraryGetKernel(&kernel, library, name.c_str());
    if (code != device::cuda::kSuccess && status.ok()) status = driver_->error(name.c_str(), code);
    return kernel;
  };
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    const auto codec = static_cast<Codec>(i);
    if (!has_kernels(codec)) continue;
    const std::string name(to_string(codec));
    codecs_[i] = {find("leeway_encode_" + name + "_nearest"),
                  find("leeway_encode_" + name + "_stochastic"), find("leeway_sum_" + name)};
  }
  rotate_ = find("leeway_rotate");
  unrotate_ = find("leeway_unrotate");
  return status;
}

bool Kernels::supports(const codec::Format& format) {
  return has_kernels(format.options.codec) && codec::is_encodable(format.element) &&
         !format.identity() && !format.options.rotate;
}

template <typename Parameter>
Status Kernels::enqueue(device::cuda::Function kernel, Parameter parameter, std::uint32_t packets,
                        unsigned warps, const Launch& launch) const {
  if (packets == 0) return Status();
  const unsigned blocks =
      std::min((packets + warps - 1) / warps, std::max(launch.multiprocessors, 1u));
  void* parameters[] = {&parameter};
  const auto code = driver_->call.cuLaunchKernel(kernel, blocks, 1, 1, warps * Warp::kLanes, 1, 1,
                                                 0, launch.stream, parameters, nullptr);
  return code == device::cuda::kSuccess ? Status() : driver_->error("cuLaunchKernel", code);
}

device::cuda::Function Kernels::encoder(const codec::Format& format) const {
  const OfCodec& kernels = codecs_[static_cast<std::size_t>(format.options.codec)];
  return format.stochastic() ? kernels.stochastic : kernels.nearest;
}

Status Kernels::encode(const codec::Format& format, EncodeJob job, const Launch& launch) const {
  if (!supports(format)) return without_kernels(format);
  return enqueue(encoder(format), Orders<EncodeJob>{job.set_format(format), {}}, job.packets.count,
                 warps_to_encode(format.options.codec), launch);
}

Status Kernels::encode_listed(const codec::Format& format, const JobList<EncodeJob>& jobs,
                              const Launch& launch) const {
  if (!supports(format)) return without_kernels(format);
  return enqueue(encoder(format), Orders<EncodeJob>{{}, jobs}, jobs.packets_max,
                 warps_to_encode(format.options.codec), launch);
}

Status Kernels::sum(const codec::Format& format, SumJob job, const Launch& launch) const {
  if (!supports(format)) return without_kernels(format);
  LEEWAY_ASSERT(job.contributions_count <= kContributionsMax);
  job.type = format.element;
  return enqueue(codecs_[static_cast<std::size_t>(format.options.codec)].sum,
                 Orders<SumJob>{job, {}}, job.packets.count, warps_to_sum(format.options.codec),
                 launch);
}

Status Kernels::sum_listed(const codec::Format& format, const JobList<SumJob>& jobs,
                           const Launch& launch) const {
  if (!supports(format)) return without_kernels(format);
  return enqueue(codecs_[static_cast<std::size_t>(format.options.codec)].sum,
                 Orders<SumJob>{{}, jobs}, jobs.packets_max, warps_to_sum(format.options.codec),
                 launch);
}

Status Kernels::load_now(const codec::Format& format, const Launch& launch) const {
  if (!supports(format)) return without_kernels(format);
  const Status status = enqueue(encoder(format), Orders<EncodeJob>(), 1,
                                warps_to_encode(format.options.codec), launch);
  if (!status.ok()) return status;
  return enqueue(codecs_[static_cast<std::size_t>(format.options.codec)].sum, Orders<SumJob>(), 1,
                 warps_to_sum(format.options.codec), launch);
}

Status Kernels::rotate(const RotateJob& job, const Launch& launch) const {
  return enqueue(rotate_, job, job.packets.count, kWarpsToRotate, launch);
}

Status Kernels::unrotate(const RotateJob& job, const Launch& launch) const {
  return enqueue(unrotate_, job, job.packets.count, kWarpsToRotate, launch);
}

}  // namespace leeway::device_codec
