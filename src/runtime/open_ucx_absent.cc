// In place of open_ucx.cc in builds without UCX.
#include "runtime/opened_transport.h"

namespace leeway::runtime {

Result<std::unique_ptr<OpenedTransport>> open_ucx(const Options&, const asio::ip::address&) {
  return Status::error(
      StatusCode::kUnsupported,
      "this Leeway was built without UCX: install libucx-dev and build with -DLEEWAY_WITH_UCX=ON");
}

}  // namespace leeway::runtime
