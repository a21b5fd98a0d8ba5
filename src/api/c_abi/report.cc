// Writes C++ reports into C structs of any version.
#include "leeway/c/report.h"

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

using namespace leeway;
using namespace leeway::c_abi;

namespace {

leeway_report_summary summary_of(const CollectiveReport& report) {
  leeway_report_summary out = LEEWAY_REPORT_SUMMARY_INIT;
  out.sequence = report.sequence;
  out.peer_count = report.peers.size();
  out.message_count = report.messages.size();
  out.loss = report.loss;
  out.loss_first_pass = report.loss_first_pass;
  out.bytes_sent = report.bytes_sent;
  out.gate_ns = report.times.gate.count();
  out.reduce_ns = report.times.reduce.count();
  out.spread_ns = report.times.spread.count();
  out.total_ns = report.times.total.count();
  out.deadline_cut = report.deadline_cut;
  out.complete = report.complete;
  out.elements_missing = report.elements_missing;
  out.elements_untouched = report.elements_untouched;
  out.contributions_fetched = report.contributions_fetched;
  out.contributions_missing = report.contributions_missing;
  out.estimator = static_cast<leeway_estimator>(report.estimator);
  out.contributors_min = report.contributors.min;
  out.contributors_mean = report.contributors.mean;
  out.variance_estimate = report.variance_estimate;
  out.noise_measured = report.noise.measured;
  out.noise_gradient_mean_square = report.noise.gradient_mean_square;
  out.noise_dispersion = report.noise.dispersion;
  out.noise_quantisation_variance = report.noise.quantisation_variance;
  out.noise_loss_variance = report.noise.loss_variance;
  out.noise_loss = report.noise.loss;
  out.noise_gain = report.noise.gain;
  out.noise_ratio = report.noise.ratio;
  out.non_finite = report.non_finite;
  out.sites = report.sites;
  out.lanes = report.lanes;
  return out;
}

leeway_peer_report struct_of(const PeerReport& peer) {
  leeway_peer_report out = LEEWAY_PEER_REPORT_INIT;
  out.rank = peer.rank;
  out.missed = peer.missed;
  out.expected = peer.expected;
  out.arrived = peer.arrived;
  out.repaired = peer.repaired;
  out.duplicate = peer.duplicate;
  out.late = peer.late;
  out.sent = peer.sent;
  return out;
}

}  // namespace

leeway_status leeway_report_create(leeway_report** report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "report", report));
    *report = new leeway_report;
    return Status();
  });
}

void leeway_report_free(leeway_report* report) {
  delete report;
}

leeway_status leeway_report_get(const leeway_report* report, leeway_report_summary* summary) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    LEEWAY_C_TRY(must_be_there(name, "summary", summary));
    return write_sized("leeway_report_summary", summary_of(report->value), summary);
  });
}

leeway_status leeway_report_peer(const leeway_report* report, std::size_t index,
                                 leeway_peer_report* peer) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    LEEWAY_C_TRY(must_be_there(name, "peer", peer));
    LEEWAY_C_TRY(check_index(name, index, report->value.peers.size()));
    return write_sized("leeway_peer_report", struct_of(report->value.peers[index]), peer);
  });
}

leeway_status leeway_report_message(const leeway_report* report, std::size_t index,
                                    leeway_message_report* message) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    LEEWAY_C_TRY(must_be_there(name, "message", message));
    LEEWAY_C_TRY(check_index(name, index, report->value.messages.size()));
    const MessageReport& from = report->value.messages[index];
    leeway_message_report out = LEEWAY_MESSAGE_REPORT_INIT;
    out.source = from.source;
    out.tag = from.tag;
    out.count = from.count;
    return write_sized("leeway_message_report", out, message);
  });
}

leeway_status leeway_report_codec(const leeway_report* report, leeway_codec_options* codec) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    LEEWAY_C_TRY(must_be_there(name, "codec", codec));
    return write_sized("leeway_codec_options", codec_struct(report->value.codec), codec);
  });
}

leeway_status leeway_report_contributors(const leeway_report* report, std::uint64_t* histogram,
                                         std::size_t capacity, std::size_t* count) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    LEEWAY_C_TRY(must_be_there(name, "histogram", histogram, capacity));
    LEEWAY_C_TRY(must_be_there(name, "count", count));
    const std::vector<std::uint64_t>& from = report->value.contributors.histogram;
    *count = from.size();
    std::copy_n(from.begin(), std::min(capacity, from.size()), histogram);
    return Status();
  });
}
