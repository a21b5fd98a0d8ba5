// Access of a warp to the jobs of a launch. Each job is copied to shared memory, where all lanes
// read it as fast as a parameter. A list is in pinned memory of the host, across the bus.
#pragma once

#include <cstddef>
#include <cstring>

#include "device_codec/gpu.h"
#include "device_codec/jobs.h"

namespace leeway::device_codec {

// Shared memory of one warp, with its copy of a job.
template <typename Job>
struct JobBuffer {
  alignas(sizeof(Quad)) std::byte bytes[(sizeof(Job) + 15) / 16 * 16];

  LEEWAY_GPU const Job& job() const { return *reinterpret_cast<const Job*>(bytes); }
};

// Number of leading bytes of a job that are in use.
LEEWAY_GPU std::size_t used_bytes(const EncodeJob&) {
  return sizeof(EncodeJob);
}
LEEWAY_GPU std::size_t used_bytes(const SumJob& job) {
  return offsetof(SumJob, contributions) + job.contributions_count * sizeof(Contribution);
}

template <typename Job>
LEEWAY_GPU void copy_job(const Warp& warp, const Job& job, JobBuffer<Job>& buffer) {
  static_assert(sizeof(Job) % sizeof(std::uint32_t) == 0 && alignof(Job) <= sizeof(Quad));
  const auto* const from = reinterpret_cast<const std::byte*>(&job);
  const std::size_t bytes = used_bytes(job);
  warp.sync();  // the job before is done
  warp.for_each_lane([&](unsigned lane) {
    for (std::size_t at = sizeof(std::uint32_t) * lane; at < bytes;
         at += sizeof(std::uint32_t) * Warp::kLanes)
      std::memcpy(buffer.bytes + at, from + at, sizeof(std::uint32_t));
  });
  warp.sync();
}

// Calls body(job, first) for each job. Packets first, first + warps, ... of the job fall to this
// warp. A job begins with the warp after the one that has the last packet of the job before.
template <typename Job, typename Body>
LEEWAY_GPU void for_each_job(const Warp& warp, const Orders<Job>& orders, unsigned index,
                             unsigned warps, JobBuffer<Job>& buffer, const Body& body) {
  const JobList<Job>& list = orders.list;
  const bool listed = list.jobs != nullptr;
  if (listed && *list.word != list.value) return;
  const unsigned count = listed ? *list.count : 1;
  const Job* const jobs = listed ? list.jobs : &orders.one;  // one loop: bodies are long
  unsigned first = index;
  for (unsigned i = 0; i < count; ++i) {
    copy_job(warp, jobs[i], buffer);
    body(buffer.job(), first);
    first = (first + warps - buffer.job().packets.count % warps) % warps;
  }
}

}  // namespace leeway::device_codec
