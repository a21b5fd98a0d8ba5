// In place of open_ucx.cc in builds without UCX.
#include "runtime/opened_transport.h"
#include "runtime/transport_survey.h"

namespace leeway::runtime {

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

}  // namespace leeway::runtime
