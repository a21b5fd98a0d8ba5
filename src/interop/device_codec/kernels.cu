// Entry points of the kernels, which kernels.cc finds by their names. nvcc alone compiles this
// file. The kernels' code is in the headers, which host compilers take too.
#include "device_codec/encode_packets.h"
#include "device_codec/orders.h"
#include "device_codec/rotate_packets.h"
#include "device_codec/sum_packets.h"

namespace leeway::device_codec {
namespace {

__device__ __forceinline__ unsigned warp_of_block() {
  return threadIdx.x / Warp::kLanes;
}
__device__ __forceinline__ unsigned warps_of_grid() {
  return gridDim.x * (blockDim.x / Warp::kLanes);
}
__device__ __forceinline__ unsigned warp_of_grid() {
  return blockIdx.x * (blockDim.x / Warp::kLanes) + warp_of_block();
}

}  // namespace

#define LEEWAY_KERNEL(warps) extern "C" __global__ void __launch_bounds__((warps)*Warp::kLanes, 1)

#define LEEWAY_ENCODE(codec, rounding, is_stochastic)                                    \
  LEEWAY_KERNEL(warps_to_encode(Codec::codec))                                           \
  leeway_encode_##codec##_##rounding(const __grid_constant__ Orders<EncodeJob> orders) { \
    __shared__ RunBuffer<PacketFormat<Codec::codec>::kBits>                              \
        buffers[warps_to_encode(Codec::codec)];                                          \
    __shared__ JobBuffer<EncodeJob> jobs[warps_to_encode(Codec::codec)];                 \
    for_each_job(Warp(), orders, warp_of_grid(), warps_of_grid(), jobs[warp_of_block()], \
                 [&](const EncodeJob& job, unsigned first) {                             \
                   encode_packets<Codec::codec, is_stochastic>(                          \
                       Warp(), job, first, warps_of_grid(), buffers[warp_of_block()]);   \
                 });                                                                     \
  }

#define LEEWAY_CODEC(codec)                                                              \
  LEEWAY_ENCODE(codec, nearest, false)                                                   \
  LEEWAY_ENCODE(codec, stochastic, true)                                                 \
  LEEWAY_KERNEL(warps_to_sum(Codec::codec))                                              \
  leeway_sum_##codec(const __grid_constant__ Orders<SumJob> orders) {                    \
    __shared__ JobBuffer<SumJob> jobs[warps_to_sum(Codec::codec)];                       \
    for_each_job(Warp(), orders, warp_of_grid(), warps_of_grid(), jobs[warp_of_block()], \
                 [&](const SumJob& job, unsigned first) {                                \
                   sum_packets<Codec::codec>(Warp(), job, first, warps_of_grid());       \
                 });                                                                     \
  }

LEEWAY_DEVICE_CODECS(LEEWAY_CODEC)

LEEWAY_KERNEL(kWarpsToRotate) leeway_rotate(const __grid_constant__ RotateJob job) {
  rotate_packets<true>(Warp(), job, warp_of_grid(), warps_of_grid());
}
LEEWAY_KERNEL(kWarpsToRotate) leeway_unrotate(const __grid_constant__ RotateJob job) {
  rotate_packets<false>(Warp(), job, warp_of_grid(), warps_of_grid());
}

}  // namespace leeway::device_codec
