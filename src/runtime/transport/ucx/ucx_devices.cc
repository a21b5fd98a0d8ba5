#include "transport/ucx/ucx_devices.h"

#include <ucp/api/ucp.h>

#include "transport/ucx/library.h"
#include "transport/ucx/report.h"
#include "transport/ucx/worker.h"

namespace leeway::transport {

std::string ucx_version() {
  return ucp_get_version_string();
}

Result<std::vector<UcxResource>> list_ucx_transports() {
  UcxWorker worker;
  if (Status status = worker.open(); !status.ok()) return status;
  std::vector<UcxResource> resources;
  for (const std::string& name : ucx_resources(worker.context())) {
    const std::size_t slash = name.find('/');
    resources.push_back({name.substr(0, slash), name.substr(slash + 1)});
  }
  return resources;
}

}  // namespace leeway::transport
