// Cost of the drop-in for NCCL on device memory, beside the same calls on host memory and plain
// copies of pinned memory. Two ranks on one GPU are threads, because a GPU takes longer to switch
// between processes than a small call takes.
//
//   nccl_device_bench [--mib 16]          up to half of the drop-in's staging memory
//   nccl_device_bench --processes 256     two processes, with larger calls; small ones mean nothing
//
// LEEWAY_TRANSPORT chooses the transport between the two ranks. Device memory, host memory and
// copies take turns, so that other load on the machine disturbs all alike. Exit status 77: there is
// no GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device/driver.h"
#include "interop/nccl/functions.h"
#include "support/device_memory.h"

namespace leeway {
namespace {

namespace cuda = device::cuda;

constexpr int kSkipped = 77;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;
constexpr int kUnset = INT_MIN;

const leeway_nccl_functions& nccl = leeway_nccl_functions_0;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", what, nccl.GetLastError(nullptr));
  std::exit(1);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double microseconds(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

leeway_nccl_comm join(int rank, const leeway_nccl_id& id, const char* name) {
  leeway_nccl_config config{};
  config.size = offsetof(leeway_nccl_config, collnet_enable);  // as programs of 2.27 have it
  config.magic = 0xcafebeef;
  config.version = 22700;
  for (int* const member : {&config.blocking, &config.cga_cluster_size, &config.min_ctas,
                            &config.max_ctas, &config.split_share, &config.traffic_class})
    *member = kUnset;
  config.comm_name = name;
  leeway_nccl_comm comm = nullptr;
  must(nccl.CommInitRankConfig(&comm, 2, id, rank, &config) == 0, "CommInitRankConfig");
  return comm;
}

// A way to move or sum the benchmark's bytes. It returns when that is done.
using Way = std::pair<const char*, std::function<void()>>;

class Bench {
 public:
  Bench(const device::Driver& driver, int rank, const std::array<leeway_nccl_id, 2>& ids,
        std::size_t bytes)
      : driver_(driver),
        rank_(rank),
        bytes_(bytes),
        exact_(join(rank, ids[0], "exact")),
        lossy_(join(rank, ids[1], "lossy")),
        host_(bytes / sizeof(float), 1.0f),
        device_(driver, bytes) {
    for (cuda::Stream& stream : streams_)
      must(driver_.call.cuStreamCreateWithPriority(&stream, cuda::kStreamNonBlocking, 0) ==
               cuda::kSuccess,
           "cuStreamCreate");
    must(driver_.call.cuMemHostAlloc(&pinned_, bytes, cuda::kHostPortable) == cuda::kSuccess,
         "cuMemHostAlloc");
    device_.put(std::as_bytes(std::span(host_)));
  }

  void run() {
    print("%-26s %12s %12s %12s %12s %12s %12s %8s\n", "us, medians", "copies", "host", "device",
          "call alone", "lossy host", "lossy device", "bar");
    constexpr std::size_t kKib = 1024;
    for (std::size_t bytes : {std::size_t{8}, 64 * kKib, 1024 * kKib, 16'384 * kKib}) {
      if (bytes < bytes_) measure(bytes);
    }
    measure(bytes_);
    must(nccl.CommDestroy(exact_) == 0 && nccl.CommDestroy(lossy_) == 0, "CommDestroy");
  }

 private:
  template <typename... Values>
  void print(const char* format, Values... values) const {
    if (rank_ != 0) return;
    std::printf(format, values...);  // NOLINT(clang-diagnostic-format-nonliteral)
    std::fflush(stdout);
  }

  void wait(int stream) const {
    must(driver_.call.cuStreamSynchronize(streams_[stream]) == cuda::kSuccess,
         "cuStreamSynchronize");
  }
  void all_reduce(leeway_nccl_comm comm, void* memory, std::size_t bytes) const {
    must(nccl.AllReduce(memory, memory, bytes / sizeof(float), kFloat32, kSum, comm, streams_[0]) ==
             0,
         "AllReduce");
  }
  void all_reduce_on_device(leeway_nccl_comm comm, std::size_t bytes) const {
    all_reduce(comm, device_.data(), bytes);
    wait(0);
  }
  // Copies one half to the host and at the same time the other half back, as a pipeline of pieces
  // would.
  void copy(std::size_t bytes) const {
    const auto device = reinterpret_cast<cuda::Address>(device_.data());
    const auto host = reinterpret_cast<cuda::Address>(pinned_);
    const std::size_t half = bytes / 2;
    for (int i = 0; i < 2; ++i) {
      (void)driver_.call.cuMemcpyAsync(host + i * half, device + i * half, half, streams_[i]);
      (void)driver_.call.cuMemcpyAsync(device + i * half, host + i * half, half, streams_[i]);
    }
    wait(0);
    wait(1);
  }

  void measure(std::size_t bytes) {
    const int calls = bytes <= 65536 ? 200 : bytes <= std::size_t{16} << 20 ? 20 : 3;
    constexpr int kTurns = 5;
    double alone = 0.0;
    std::vector<double> alone_times;
    const Way ways[] = {
        {"copies", [&] { copy(bytes); }},
        {"host", [&] { all_reduce(exact_, host_.data(), bytes); }},
        {"device",
         [&] {
           alone = microseconds([&] { all_reduce(exact_, device_.data(), bytes); });
           alone_times.push_back(alone);
           wait(0);
         }},
        {"lossy host", [&] { all_reduce(lossy_, host_.data(), bytes); }},
        {"lossy device", [&] { all_reduce_on_device(lossy_, bytes); }},
    };
    std::array<std::vector<double>, std::size(ways)> times;
    for (int turn = 0; turn <= kTurns; ++turn) {  // the first warms up
      for (std::size_t way = 0; way < std::size(ways); ++way) {
        all_reduce(exact_, host_.data(), 8);  // both ranks begin
        for (int i = 0; i < calls; ++i) {
          const double took = microseconds(ways[way].second);
          if (turn > 0) times[way].push_back(took);
        }
      }
    }
    std::array<double, std::size(ways)> us{};
    for (std::size_t way = 0; way < std::size(ways); ++way) us[way] = median(times[way]);
    const double bar = us[2] / std::max(us[0], us[1]);
    print("%-26zu %12.1f %12.1f %12.1f %12.1f %12.1f %12.1f %8.3f\n", bytes, us[0], us[1], us[2],
          median(alone_times), us[3], us[4], bar);
  }

  const device::Driver& driver_;
  const int rank_;
  const std::size_t bytes_;
  leeway_nccl_comm exact_;
  leeway_nccl_comm lossy_;
  std::vector<float> host_;
  device_codec::DeviceMemory device_;
  void* pinned_ = nullptr;
  std::array<cuda::Stream, 2> streams_{};
};

int run(int rank, const std::array<leeway_nccl_id, 2>& ids, std::size_t bytes) {
  const auto driver = device::Driver::open();
  if (!driver.ok()) return std::printf("skipped: %s\n", driver.status().c_str()), kSkipped;
  const auto context = device::context_of(**driver, 0);
  if (!context.ok()) return std::printf("%s\n", context.status().c_str()), 1;
  const device::ContextScope scope(**driver, context->context);
  Bench(**driver, rank, ids, bytes).run();
  return 0;
}

using Ids = std::array<leeway_nccl_id, 2>;

Ids make_ids() {
  Ids ids{};
  for (leeway_nccl_id& id : ids) must(nccl.GetUniqueId(&id) == 0, "GetUniqueId");
  return ids;
}

int run_as_threads(std::size_t bytes) {
  // With fewer queues, streams of the two ranks could wait for each other in one queue.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const Ids ids = make_ids();
  int other = 0;
  std::thread rank([&] { other = run(1, ids, bytes); });
  const int own = run(0, ids, bytes);
  rank.join();
  return own != 0 ? own : other;
}

int run_as_processes(std::size_t bytes) {
  std::array<int, 2> ends{};
  must(::pipe(ends.data()) == 0, "pipe");
  const pid_t child = ::fork();  // before the driver is opened, which does not outlive a fork
  if (child == 0) {
    Ids ids{};
    must(::read(ends[0], &ids, sizeof ids) == sizeof ids, "read");
    std::exit(run(1, ids, bytes));
  }
  const Ids ids = make_ids();
  must(::write(ends[1], &ids, sizeof ids) == sizeof ids, "write");
  const int own = run(0, ids, bytes);
  int status = 0;
  ::waitpid(child, &status, 0);
  return own != 0 || status == 0 ? own : 1;
}

}  // namespace
}  // namespace leeway

int main(int count, char** words) {
  std::size_t mib = 16;
  bool processes = false;
  for (int i = 1; i + 1 < count; i += 2) {
    processes = std::string_view(words[i]) == "--processes";
    mib = std::strtoull(words[i + 1], nullptr, 10);
  }
  ::setenv("LEEWAY_BIND", "127.0.0.1", 0);
  ::setenv("LEEWAY_NCCL_POLICY", "all_reduce | f32 | >=1MiB | comm=lossy -> best_effort(5s) nvfp4",
           0);
  return processes ? leeway::run_as_processes(mib << 20) : leeway::run_as_threads(mib << 20);
}
