// In place of open_ucx.cc in builds without UCX.
#include "rendezvous/opened_transport.h"
#include "rendezvous/transport_survey.h"

namespace leeway::rendezvous {

namespace {

Status absent() {
  return Status::error(
      StatusCode::kUnsupported,
      "this Leeway was built without UCX: install libucx-dev and build with -DLEEWAY_WITH_UCX=ON");
}

}  // namespace

Result<std::unique_ptr<OpenedTransport>> open_ucx(const Options&, const asio::ip::address&) {
  return absent();
}

TransportSurvey survey_ucx() {
  return {absent(), "", {}};
}

}  // namespace leeway::rendezvous
