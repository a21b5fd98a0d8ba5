#include "transport/ucx/worker.h"

#include <cstring>

#include "transport/ucx/library.h"

namespace leeway::transport {
namespace {

constexpr UcxSetting kSettings[] = {
    // Caches of registered memory hook into malloc() and munmap() of the whole process. We need
    // none: everything goes eagerly, through UCX's own buffers.
    {"RCACHE_ENABLE", "n"},
    {"REG_METHODS", "direct"},
    {"IB_REG_METHODS", "direct"},
    // Shared memory: messages that a receiver's queue holds, of all senders together. Those that
    // find it full are copied aside. 64, UCX's own choice, is less than what credits let the
    // senders have on their way (kReceiveBytes).
    {"FIFO_SIZE", "128"},
    {"POSIX_FIFO_SIZE", "128"},
    {"SYSV_FIFO_SIZE", "128"},
};

}  // namespace

Status UcxWorker::open() {
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
