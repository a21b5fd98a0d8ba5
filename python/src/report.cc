// Bindings of reports.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <string>

#include "bindings.h"
#include "leeway/report.h"
#include "numbers.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

// A number for people: six digits.
std::string shown(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", number);
  return buffer;
}

std::string describe(const CollectiveReport& report) {
  std::string text = "Report(loss=" + shown(report.loss);
  if (report.loss_first_pass != report.loss)
    text += ", loss_first_pass=" + shown(report.loss_first_pass);
  if (!report.contributors.histogram.empty())
    text += ", contributors=" + shown(report.contributors.mean);
  text += ", seconds=" + shown(to_seconds(report.times.total));
  text += ", bytes_sent=" + std::to_string(report.bytes_sent);
  if (report.elements_missing != 0)
    text += ", elements_missing=" + std::to_string(report.elements_missing);
  if (report.elements_untouched != 0)
    text += ", elements_untouched=" + std::to_string(report.elements_untouched);
  if (report.non_finite != 0) text += ", non_finite=" + std::to_string(report.non_finite);
  if (report.deadline_cut) text += ", deadline_cut=True";
  if (!report.complete) text += ", complete=False";
  return text + ")";
}

void bind_parts(nb::module_& module) {
  nb::class_<PeerReport>(module, "PeerReport",
                         "Packets of one peer in one call; counts are exact, of distinct packets.")
      .def_ro("rank", &PeerReport::rank)
      .def_ro("expected", &PeerReport::expected, "that the plan says this peer sends")
      .def_ro("arrived", &PeerReport::arrived, "accepted, repaired ones included")
      .def_ro("repaired", &PeerReport::repaired, "of those, on a repair pass or from parity")
      .def_ro("duplicate", &PeerReport::duplicate, "copies; never used")
      .def_ro("late", &PeerReport::late, "after the call had settled; never used")
      .def_ro("sent", &PeerReport::sent, "that this rank sent the peer")
      .def_ro("missed", &PeerReport::missed,
              "the peer settled its shard without any packet of this rank")
      .def("__repr__", [](const PeerReport& self) {
        return "PeerReport(rank=" + std::to_string(self.rank) +
               ", arrived=" + std::to_string(self.arrived) + " of " +
               std::to_string(self.expected) + ", sent=" + std::to_string(self.sent) +
               (self.missed ? ", missed=True)" : ")");
      });
  nb::class_<ContributorStats>(module, "Contributors",
                               "How many ranks' contributions are in the packets of this rank's "
                               "shard; its own counts. Of a shard without packets min and mean "
                               "are all ranks.")
      .def_ro("min", &ContributorStats::min, "of the packet with the fewest")
      .def_ro("mean", &ContributorStats::mean, "over packets")
      .def_ro("histogram", &ContributorStats::histogram, "[k]: packets with k contributors");
  nb::class_<NoiseReport>(module, "Noise",
                          "The gradient against the noise of quantisation and loss, per element "
                          "and unit of work.")
      .def_ro("measured", &NoiseReport::measured, "False: the others say nothing")
      .def_ro("gradient_mean_square", &NoiseReport::gradient_mean_square, "of the true gradient")
      .def_ro("dispersion", &NoiseReport::dispersion, "variance of a rank's contribution around it")
      .def_ro("quantisation_variance", &NoiseReport::quantisation_variance,
              "of the mean, both halves")
      .def_ro("loss_variance", &NoiseReport::loss_variance,
              "of the mean: its mean square distance to gain times the mean without loss")
      .def_ro("loss", &NoiseReport::loss,
              "part of the contributions' packets to this rank's shard that is missing")
      .def_ro("gain", &NoiseReport::gain,
              "part of the gradient that is in the result; below 1 for zero_fill")
      .def_ro("ratio", &NoiseReport::ratio,
              "gain x rms gradient over rms noise; below sqrt(3) more bits are due");
  nb::class_<MessageReport>(module, "MessageReport", "One message as it was sent or received.")
      .def_prop_ro("source", [](const MessageReport& self) { return self.source; })
      .def_ro("tag", &MessageReport::tag)
      .def_ro("count", &MessageReport::count, "elements that were sent");
}

}  // namespace

void bind_report(nb::module_& module) {
  bind_parts(module);
  using R = CollectiveReport;
  nb::class_<R>(module, "Report", "What one call did, as this rank saw it. Times are seconds.")
      .def_ro("sequence", &R::sequence, "number of the call on its communicator")
      .def_ro("peers", &R::peers, "one for each other rank")
      .def_ro("contributors", &R::contributors)
      .def_ro("owners", &R::owners, "among how many ranks the tensor was cut")
      .def_ro("loss", &R::loss,
              "part of the packets to this rank that is missing after repair, both halves")
      .def_ro("loss_first_pass", &R::loss_first_pass,
              "the same before anything was asked for again: lost, or too late")
      .def_ro("bytes_sent", &R::bytes_sent,
              "by this rank, headers and repairs included; 0 where memory carried the call")
      .def_ro("deadline_cut", &R::deadline_cut, "the deadline ended it on this rank")
      .def_ro("complete", &R::complete,
              "every element of this rank's result arrived; ranks of which that is true hold the "
              "same bits where a call gives all the same. Says nothing of other ranks")
      .def_ro("elements_missing", &R::elements_missing, "of the result, that no packet brought")
      .def_ro("elements_untouched", &R::elements_untouched,
              "of this rank's shard, to which nobody contributed")
      .def_ro("sites", &R::sites, "contributors are so many sites; 0: ranks")
      .def_ro("lanes", &R::lanes, "slices, one for each lane that the call used")
      .def_ro("non_finite", &R::non_finite,
              "packets of contributions left out because of an infinity or a NaN in them")
      .def_ro("contributions_fetched", &R::contributions_fetched,
              "peers whose contribution to this rank's shard was lost whole and asked for again")
      .def_ro("contributions_missing", &R::contributions_missing,
              "peers of whose contribution to this rank's shard nothing arrived in time")
      .def_prop_ro("estimator",
                   [](const R& self) { return std::string(to_string(self.estimator)); })
      .def_prop_ro("codec", [](const R& self) { return to_string(self.codec); })
      .def_ro("variance_estimate", &R::variance_estimate,
              "of an element of the result, by loss, in the square of its unit; mean over this "
              "rank's shard: noise.loss_variance, of a sum times size squared. Unbiased: of few "
              "elements it may be far off, and below 0. 0: nothing was lost; NaN: something was, "
              "and noise.measured is False")
      .def_ro("noise", &R::noise)
      .def_ro("messages", &R::messages, "of send, recv and exchange")
      .def_prop_ro(
          "seconds", [](const R& self) { return to_seconds(self.times.total); },
          "from the call to its end")
      .def_prop_ro(
          "seconds_to_open", [](const R& self) { return to_seconds(self.times.gate); },
          "until every peer that is needed had made the same call")
      .def_prop_ro(
          "seconds_to_reduce", [](const R& self) { return to_seconds(self.times.reduce); },
          "until this rank's shard was settled")
      .def("__repr__", &describe);
}

}  // namespace leeway::python
