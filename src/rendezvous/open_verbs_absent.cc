// In place of open_verbs.cc in builds without libibverbs.
#include "rendezvous/opened_transport.h"
#include "rendezvous/transport_survey.h"

namespace leeway::rendezvous {

namespace {

Status absent() {
  return Status::error(StatusCode::kUnsupported,
                       "this Leeway was built without InfiniBand and RoCE: install libibverbs-dev "
                       "and librdmacm-dev and "
                       "build with -DLEEWAY_WITH_VERBS=ON");
}

}  // namespace

Result<std::unique_ptr<OpenedTransport>> open_verbs(const Options&, const asio::ip::address&) {
  return absent();
}

TransportSurvey survey_verbs() {
  return {absent(), "", {}};
}

}  // namespace leeway::rendezvous
