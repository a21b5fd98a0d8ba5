#include "support/host_kernels.h"

#include <dlfcn.h>

#include <cstring>
#include <map>

#include "base/contracts.h"
#include "device_codec/encode_packets.h"
#include "device_codec/orders.h"
#include "device_codec/rotate_packets.h"
#include "device_codec/sum_packets.h"
#include "support/cuda_double/control.h"

namespace leeway::device_codec {
namespace {

// ---- the kernels ----

// A function that returns a job with other addresses: those at which the kernel can access the
// memory.
template <typename Job>
using Seen = Job (*)(const Job&);

template <typename Job>
Job as_it_is(const Job& job) {
  return job;
}

template <Codec which, bool stochastic>
void run_encode(const Orders<EncodeJob>& orders, unsigned warps, Seen<EncodeJob> seen) {
  for (unsigned warp = 0; warp < warps; ++warp) {
    RunBuffer<PacketFormat<which>::kBits> buffer{};
    JobBuffer<EncodeJob> slot;
    for_each_job(Warp(), orders, warp, warps, slot, [&](const EncodeJob& job, unsigned first) {
      encode_packets<which, stochastic>(Warp(), seen(job), first, warps, buffer);
    });
  }
}

template <Codec which>
void run_sum(const Orders<SumJob>& orders, unsigned warps, Seen<SumJob> seen) {
  for (unsigned warp = 0; warp < warps; ++warp) {
    JobBuffer<SumJob> slot;
    for_each_job(Warp(), orders, warp, warps, slot, [&](const SumJob& job, unsigned first) {
      sum_packets<which>(Warp(), seen(job), first, warps);
    });
  }
}

template <Codec which, bool stochastic>
void encode(const EncodeJob& job, unsigned warps) {
  run_encode<which, stochastic>({job, {}}, warps, as_it_is<EncodeJob>);
}

template <Codec which>
void sum(const SumJob& job, unsigned warps) {
  run_sum<which>({job, {}}, warps, as_it_is<SumJob>);
}

template <bool forward>
void rotate(const RotateJob& job, unsigned warps) {
  for (unsigned warp = 0; warp < warps; ++warp) rotate_packets<forward>(Warp(), job, warp, warps);
}

struct OfCodec {
  void (*nearest)(const EncodeJob&, unsigned);
  void (*stochastic)(const EncodeJob&, unsigned);
  void (*sum)(const SumJob&, unsigned);
};

const std::map<Codec, OfCodec>& kernels() {
  static const std::map<Codec, OfCodec> all = {
#define LEEWAY_ROW(name) \
  {Codec::name, {encode<Codec::name, false>, encode<Codec::name, true>, sum<Codec::name>}},
      LEEWAY_DEVICE_CODECS(LEEWAY_ROW)
#undef LEEWAY_ROW
  };
  return all;
}

// ---- kernels on the CUDA double ----

void* (*alias)(device::cuda::Address, std::uint64_t) = nullptr;

// Converts a device address to the address at which a kernel of the double accesses it. Ends the
// program unless `memory` begins `bytes` of device memory.
template <typename T>
void see(T*& memory, std::size_t bytes) {
  if (memory == nullptr || bytes == 0) return;
  memory = static_cast<T*>(alias(reinterpret_cast<device::cuda::Address>(memory), bytes));
}

std::size_t bytes_of_elements(const Packets& packets, DataType type) {
  return packets.elements * size_of(type);
}

template <Codec which>
std::size_t bytes_of_packets(const Packets& packets) {
  if (packets.count == 0) return 0;
  const PacketOfJob last(packets, packets.count - 1);
  return last.at + PacketFormat<which>::bytes(last.elements);
}

template <Codec which>
EncodeJob encode_seen(const EncodeJob& given) {
  EncodeJob job = given;
  see(job.elements, bytes_of_elements(job.packets, job.type));
  see(job.out, bytes_of_packets<which>(job.packets));
  return job;
}

template <Codec which>
SumJob sum_seen(const SumJob& given) {
  SumJob job;
  std::memcpy(static_cast<void*>(&job), &given, used_bytes(given));  // the rest of it is not there
  see(job.elements, bytes_of_elements(job.packets, job.type));
  for (unsigned i = 0; i < job.contributions_count; ++i) {
    Contribution& one = job.contributions[i];
    see(one.data, one.encoded ? bytes_of_packets<which>(job.packets)
                              : bytes_of_elements(job.packets, job.type));
    see(one.factors, job.packets.count * sizeof(float));
  }
  return job;
}

template <Codec which, bool stochastic>
void encode_on_double(const void* parameter, unsigned warps) {
  run_encode<which, stochastic>(*static_cast<const Orders<EncodeJob>*>(parameter), warps,
                                encode_seen<which>);
}

template <Codec which>
void sum_on_double(const void* parameter, unsigned warps) {
  run_sum<which>(*static_cast<const Orders<SumJob>*>(parameter), warps, sum_seen<which>);
}

template <bool forward>
void rotate_on_double(const void* parameter, unsigned warps) {
  RotateJob job = *static_cast<const RotateJob*>(parameter);
  see(job.elements, bytes_of_elements(job.packets, DataType::f32));
  see(job.out, bytes_of_elements(job.packets, DataType::f32));
  rotate<forward>(job, warps);
}

}  // namespace

void encode_on_host(const codec::Format& format, EncodeJob job, unsigned warps) {
  const OfCodec& of = kernels().at(format.options.codec);
  (format.stochastic() ? of.stochastic : of.nearest)(job.set_format(format), warps);
}

void sum_on_host(const codec::Format& format, SumJob job, unsigned warps) {
  job.type = format.element;
  kernels().at(format.options.codec).sum(job, warps);
}

void rotate_on_host(const RotateJob& job, unsigned warps) {
  rotate<true>(job, warps);
}
void unrotate_on_host(const RotateJob& job, unsigned warps) {
  rotate<false>(job, warps);
}

bool register_host_kernels(void* library) {
  const auto add = reinterpret_cast<decltype(&cuda_double_register_kernel)>(
      ::dlsym(library, "cuda_double_register_kernel"));
  alias = reinterpret_cast<decltype(alias)>(::dlsym(library, "cuda_double_alias"));
  if (add == nullptr || alias == nullptr) return false;
#define LEEWAY_ADD(name)                                               \
  add("leeway_encode_" #name "_nearest", sizeof(Orders<EncodeJob>),    \
      encode_on_double<Codec::name, false>);                           \
  add("leeway_encode_" #name "_stochastic", sizeof(Orders<EncodeJob>), \
      encode_on_double<Codec::name, true>);                            \
  add("leeway_sum_" #name, sizeof(Orders<SumJob>), sum_on_double<Codec::name>);
  LEEWAY_DEVICE_CODECS(LEEWAY_ADD)
#undef LEEWAY_ADD
  add("leeway_rotate", sizeof(RotateJob), rotate_on_double<true>);
  add("leeway_unrotate", sizeof(RotateJob), rotate_on_double<false>);
  return true;
}

}  // namespace leeway::device_codec
