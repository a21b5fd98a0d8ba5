// In place of open_verbs.cc in builds without libibverbs.
#include "runtime/opened_transport.h"

namespace leeway::runtime {

Result<std::unique_ptr<OpenedTransport>> open_verbs(const Options&, const asio::ip::address&) {
  return Status::error(StatusCode::kUnsupported,
                       "this Leeway was built without InfiniBand and RoCE: install libibverbs-dev "
                       "and librdmacm-dev and "
                       "build with -DLEEWAY_WITH_VERBS=ON");
}

}  // namespace leeway::runtime
