#include "support/host_kernels.h"

#include <dlfcn.h>

#include <map>

#include "base/contracts.h"
#include "device_codec/encode_packets.h"
#include "device_codec/rotate_packets.h"
#include "device_codec/sum_packets.h"
#include "support/cuda_double/control.h"

namespace leeway::device_codec {
namespace {

// ---- the kernels ----

template <Codec which, bool stochastic>
void encode(const EncodeJob& job, unsigned warps) {
  for (unsigned warp = 0; warp < warps; ++warp) {
    RunBuffer buffer{};
    encode_packets<which, stochastic>(Warp(), job, warp, warps, buffer);
  }
}

template <Codec which>
void sum(const SumJob& job, unsigned warps) {
  for (unsigned warp = 0; warp < warps; ++warp) {
    RunBuffer buffer{};
    sum_packets<which>(Warp(), job, warp, warps, buffer);
  }
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

// ---- on the driver double ----

void* (*alias)(device::cuda::Address, std::uint64_t) = nullptr;

// The address as a kernel of the double sees it; ends the program where so many bytes are not
// there.
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

template <Codec which, bool stochastic>
void encode_on_double(const void* parameter, unsigned warps) {
  EncodeJob job = *static_cast<const EncodeJob*>(parameter);
  see(job.elements, bytes_of_elements(job.packets, job.type));
  see(job.out, bytes_of_packets<which>(job.packets));
  encode<which, stochastic>(job, warps);
}

template <Codec which>
void sum_on_double(const void* parameter, unsigned warps) {
  SumJob job = *static_cast<const SumJob*>(parameter);
  see(job.elements, bytes_of_elements(job.packets, job.type));
  for (unsigned i = 0; i < job.contributions_count; ++i) {
    Contribution& one = job.contributions[i];
    see(one.data, one.encoded ? bytes_of_packets<which>(job.packets)
                              : bytes_of_elements(job.packets, job.type));
    see(one.factors, job.packets.count * sizeof(float));
  }
  sum<which>(job, warps);
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
#define LEEWAY_ADD(name)                                                                           \
  add("leeway_encode_" #name "_nearest", sizeof(EncodeJob), encode_on_double<Codec::name, false>); \
  add("leeway_encode_" #name "_stochastic", sizeof(EncodeJob),                                     \
      encode_on_double<Codec::name, true>);                                                        \
  add("leeway_sum_" #name, sizeof(SumJob), sum_on_double<Codec::name>);
  LEEWAY_DEVICE_CODECS(LEEWAY_ADD)
#undef LEEWAY_ADD
  add("leeway_rotate", sizeof(RotateJob), rotate_on_double<true>);
  add("leeway_unrotate", sizeof(RotateJob), rotate_on_double<false>);
  return true;
}

}  // namespace leeway::device_codec
