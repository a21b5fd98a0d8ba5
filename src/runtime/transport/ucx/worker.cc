#include "transport/ucx/worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <latch>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "transport/near_datagram.h"
#include "transport/ucx/library.h"
#include "transport/ucx/report.h"

namespace leeway::transport {
namespace {

constexpr UcxSetting kSettings[] = {
    // Caches of registered memory hook into malloc() and munmap() of the whole process. The caches
    // are off and not needed, because all messages are eager and go through UCX's own buffers.
    {"RCACHE_ENABLE", "n"},
    {"REG_METHODS", "direct"},
    {"IB_REG_METHODS", "direct"},
    // A segment of 32,832 bytes holds a datagram in one piece. (It is a cache line more than a
    // power of two, like UCX's own 8,256 bytes.) UCX maps 64 segments at a time: 2 MiB. At 4 times
    // UCX's size an all-reduce of 16 MiB between 4 ranks takes 0.80 of the time over shared memory,
    // 0.72 over TCP.
    {"MM_SEG_SIZE", "32832", "SEG_SIZE"},
    {"MM_RX_BUFS_GROW", "64", "RX_BUFS_GROW"},
    {"TX_SEG_SIZE", "32768", "SEG_SIZE"},  // TCP's; its receive segments have 64 KiB
};

// Checks that enough descriptors are free, because UCX ends the process if a worker gets none. A
// worker takes about 30, more with several devices.
Status check_descriptors() {
  constexpr rlim_t kFreeMin = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  const auto used =
      error ? limit.rlim_cur : static_cast<rlim_t>(std::distance(begin(open), end(open)));
  if (used + kFreeMin <= limit.rlim_cur) return Status();
  return Status::error(StatusCode::kResourceExhausted,
                       "Too many open files: UCX takes dozens, and of the %llu that this process "
                       "may have (ulimit -n) %llu are open",
                       static_cast<unsigned long long>(limit.rlim_cur),
                       static_cast<unsigned long long>(used));
}

// Checks the limit of file sizes. UCX shares memory by files, and the kernel ends a process whose
// file grows beyond the limit.
Status check_file_size() {
  constexpr rlim_t kFileMin = rlim_t{64} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kFileMin) return Status();
  return Status::error(StatusCode::kResourceExhausted,
                       "files of this process may have %llu bytes only (ulimit -f)",
                       static_cast<unsigned long long>(limit.rlim_cur));
}

// Checks that kFreeMin more threads can start. UCX ends the process if its worker cannot start its
// one thread. The spare ones are for ranks of this user that start threads at the same time.
Status check_threads() {
  constexpr int kFreeMin = 8;
  std::latch counted(1);
  std::vector<Thread> free;
  Status status;
  while (status.ok() && free.size() < kFreeMin) {
    auto thread = Thread::start("be UCX's", [&](const std::stop_token&) { counted.wait(); });
    status = thread.status();
    if (thread.ok()) free.push_back(std::move(*thread));
  }
  counted.count_down();
  return status;
}

// Datagrams of this size fit into segments of UCX's own size: 8,256 bytes for shared memory and
// reliable connections, 8,192 for TCP, datagrams and self. Reliable connections keep thousands of
// segments in registered memory, so larger segments would take too much.
constexpr std::size_t kUsualDatagramBytes = 8128;

// Returns true if every transport that may carry messages between ranks has segments as in
// kSettings.
bool segments_are_ours(const std::vector<std::string>& resources) {
  constexpr std::string_view kOurs[] = {"posix/", "sysv/", "tcp/"};
  constexpr std::string_view kNoMessages[] = {"self/", "cma/", "knem/"};
  const auto is_one_of = [](const std::string& resource, auto& names) {
    return std::any_of(std::begin(names), std::end(names),
                       [&](std::string_view name) { return resource.starts_with(name); });
  };
  return std::all_of(resources.begin(), resources.end(), [&](const std::string& resource) {
    return is_one_of(resource, kOurs) || is_one_of(resource, kNoMessages);
  });
}

}  // namespace

Status UcxWorker::open() {
  // Keeps other workers from taking the descriptors and threads that the checks below find free.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (Status status = check_descriptors(); !status.ok()) return status;
  if (Status status = check_threads(); !status.ok()) return status;
  if (Status status = check_file_size(); !status.ok()) return status;
  const UcxQuiet quiet;
  const auto config = read_ucx_config(kSettings);
  if (!config.ok()) return config.status();
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "leeway";
  ucs_status_t status = ucp_init(&params, *config, &context_);
  ucp_config_release(*config);
  if (status != UCS_OK) return ucx_error(StatusCode::kUnavailable, status, "no usable transport");

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  worker.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  status = ucp_worker_create(context_, &worker, &worker_);
  if (status != UCS_OK)
    return ucx_error(StatusCode::kResourceExhausted, status, "creating a worker");
  status = ucp_worker_get_efd(worker_, &event_);
  if (status != UCS_OK)
    return ucx_error(StatusCode::kResourceExhausted, status, "event descriptor of the worker");
  const bool ours = !ucx_variable_set("SEG_SIZE") && segments_are_ours(ucx_resources(context_));
  datagram_bytes_max_ = ours ? kNearDatagramBytes : kUsualDatagramBytes;
  return {};
}

UcxWorker::~UcxWorker() {
  const UcxQuiet quiet;
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::vector<std::byte>> UcxWorker::address() const {
  const UcxQuiet quiet;
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) return ucx_error(StatusCode::kInternal, status, "own address");
  std::vector<std::byte> copy(bytes);
  std::memcpy(copy.data(), address, bytes);
  ucp_worker_release_address(worker_, address);
  return copy;
}

}  // namespace leeway::transport
