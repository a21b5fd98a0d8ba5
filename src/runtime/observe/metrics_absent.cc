// MetricsServer in a build without prometheus-cpp: it always fails.
#include "observe/metrics_server.h"

namespace leeway::observe {

Result<std::shared_ptr<MetricsServer>> MetricsServer::at(const rendezvous::MetricsAddress&) {
  return Status::error(StatusCode::kUnsupported,
                       "this build has no metrics: install prometheus-cpp-dev and configure again "
                       "with -DLEEWAY_WITH_METRICS=ON");
}

}  // namespace leeway::observe
