
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "codec.h"
#include "collective_options.h"
#include "communicator.h"
#include "errors.h"
#include "gil.h"
#include "leeway/late_work.h"
#include "leeway/replica.h"
#include "numbers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace leeway::python {
namespace {

ReplicaOptions options_of(std::uint32_t age_max, nb::handle delivery, nb::handle deadline,
                          nb::handle codec, std::uint32_t drift_every,
                          std::uint32_t drift_samples) {
  ReplicaOptions options;
  options.age_max = age_max;
  options.deadline = to_duration(deadline, "deadline");
  options.drift_every = drift_every;
  options.drift_samples = drift_samples;
  options.codec = to_codec(codec, "codec");
  const auto name = nb::cast<std::string>(nb::str(delivery));
  if (name == "exact") {
    options.delivery = Delivery::Kind::exact;
  } else if (name != "best_effort") {
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "delivery: %s is neither \"best_effort\" nor \"exact\"",
                                name.c_str()));
  }
  return options;
}

ReplicaOptions to_options(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<ReplicaOptions>(value)) return nb::cast<ReplicaOptions>(value);
  refuse("options: %s is not a leeway.ReplicaOptions", nb::repr(value).c_str());
}

// Replicated parameters, with the array and the communicator that they need.
class PyReplica {
 public:
  PyReplica(nb::object communicator, nb::handle parameters, const ReplicaOptions& options)
      : communicator_(std::move(communicator)),
        parameters_(to_array(parameters, true, "parameters")),
        replica_(value_of(Replica::create(to_communicator(communicator_).get(),
                                          to_floats(parameters_, "parameters"), options))) {}

  // The replica. Throws if the communicator has been closed meanwhile.
  Replica& get() const {
    (void)to_communicator(communicator_).get();
    return *replica_;
  }
  const nb::object& parameters() const { return parameters_.owner; }
  // Reads the arguments of a collective call, as read_counted() does.
  template <typename Read>
  auto counted(const Read& read) const {
    return read_counted(to_communicator(communicator_), read);
  }

 private:
  nb::object communicator_;
  Array parameters_;
  std::unique_ptr<Replica> replica_;
};

template <typename Function>
CollectiveReport without_gil(const Function& function) {
  auto outcome = [&] {
    WithoutGil free;
    return function();
  }();
  return value_of(std::move(outcome));
}

void bind_drift(nb::module_& module) {
  using D = DriftReport;
  nb::class_<D>(module, "DriftReport",
                "How far replicas are apart, measured beside predicted: mean squares per element.")
      .def_ro("measurements", &D::measurements)
      .def_ro("pair_measured", &D::pair_measured, "between ranks that do not own the element")
      .def_ro("owner_measured", &D::owner_measured, "between an element's owner and others")
      .def_ro("pair_predicted", &D::pair_predicted)
      .def_ro("owner_predicted", &D::owner_predicted)
      .def_ro("pair_predicted_gap", &D::pair_predicted_gap)
      .def_ro("loss", &D::loss, "of the broadcasts")
      .def_ro("step_variance", &D::step_variance)
      .def_ro("step_mean_square", &D::step_mean_square)
      .def_ro("gap_mean_square", &D::gap_mean_square)
      .def_ro("age_max_seen", &D::age_max_seen)
      .def_ro("age_mean", &D::age_mean)
      .def_ro("blocks_refreshed", &D::blocks_refreshed)
      .def_ro("age_histogram", &D::age_histogram, "[a]: block-steps spent at age a")
      .def("__repr__", [](const D& self) {
        char text[200];
        std::snprintf(text, sizeof text,
                      "DriftReport(loss=%.6g, pair_measured=%.6g, pair_predicted=%.6g, "
                      "age_mean=%.4g, age_max_seen=%u)",
                      self.loss, self.pair_measured, self.pair_predicted, self.age_mean,
                      self.age_max_seen);
        return std::string(text);
      });
}

void bind_late_work(nb::module_& module) {
  nb::class_<LateWorkStatistics>(module, "LateWorkStatistics")
      .def_ro("missed", &LateWorkStatistics::missed)
      .def_ro("carried", &LateWorkStatistics::carried)
      .def_ro("dropped", &LateWorkStatistics::dropped)
      .def_ro("elements_carried", &LateWorkStatistics::elements_carried)
      .def_ro("weight_carried", &LateWorkStatistics::weight_carried);
  nb::class_<LateWork>(
      module, "LateWork",
      "Carries a contribution that missed its round into the next, with its weight.\n\n"
      "options = late.add_to(gradient, options); report = comm.all_reduce(gradient,\n"
      "options); late.keep(report). Biased by a step: off unless used.")
      .def(nb::init<std::size_t>(), "count"_a)
      .def(
          "add_to",
          [](LateWork& self, nb::handle gradient, nb::handle options) {
            const Array array = to_array(gradient, true, "gradient");
            CallOptions made = merged(options, nb::kwargs());
            CollectiveOptions value = made.value();
            check(self.add_to(to_floats(array, "gradient"), value));
            made.set("confirm_use", nb::bool_(value.confirm_use));
            made.set("owner_weights", nb::cast(std::vector<double>(value.owner_weights.begin(),
                                                                   value.owner_weights.end())));
            return made;
          },
          "gradient"_a, "options"_a,
          "Adds what was missed to `gradient`, and returns the options for its reduction.")
      .def("keep", &LateWork::keep, "report"_a)
      .def_prop_ro("statistics", &LateWork::statistics);
}

}  // namespace

void bind_replica(nb::module_& module) {
  bind_drift(module);
  bind_late_work(module);
  nb::class_<ReplicaOptions>(module, "ReplicaOptions",
                             "How old replicas may become, and how they travel.")
      .def(
          "__init__",
          [](ReplicaOptions* self, std::uint32_t age_max, nb::handle delivery, nb::handle deadline,
             nb::handle codec, std::uint32_t drift_every, std::uint32_t drift_samples) {
            new (self) ReplicaOptions(
                options_of(age_max, delivery, deadline, codec, drift_every, drift_samples));
          },
          "age_max"_a = 8, "delivery"_a = "best_effort", "deadline"_a = 5.0, "codec"_a = "native",
          "drift_every"_a = 16, "drift_samples"_a = 256,
          "age_max: versions a block may be behind before it must arrive, 1 to 255; 0: no cap.\n"
          "delivery: of broadcasts, \"best_effort\" or \"exact\". drift_every: broadcasts between "
          "two\n"
          "measurements of `drift_samples` values a shard; 0: never.")
      .def_ro("age_max", &ReplicaOptions::age_max)
      .def_ro("drift_every", &ReplicaOptions::drift_every)
      .def_ro("drift_samples", &ReplicaOptions::drift_samples);
  nb::class_<PyReplica>(
      module, "Replica",
      "Parameters of which every rank holds a copy and owns a shard.\n\n"
      "A step: reduce_gradients(gradient), update owned(), broadcast_parameters().\n"
      "A rank that misses a packet keeps the stale value, of bounded age.")
      .def(
          "__init__",
          [](PyReplica* self, nb::object communicator, nb::handle parameters, nb::handle options) {
            new (self) PyReplica(std::move(communicator), parameters, to_options(options));
          },
          "communicator"_a.none(), "parameters"_a.none(), "options"_a.none() = nb::none(),
          "`parameters`: contiguous float32, the same values on all ranks, or synchronize() first.")
      .def_prop_ro("parameters", &PyReplica::parameters)
      .def_prop_ro(
          "owned_range",
          [](const PyReplica& self) {
            const std::size_t begin = self.get().owned_offset();
            return std::pair(begin, begin + self.get().owned_count());
          },
          "begin and end of this rank's shard, in elements of `parameters`")
      .def(
          "owned",
          [](nb::handle self) {
            const std::span<float> owned = nb::cast<PyReplica&>(self).get().owned();
            return nb::ndarray<nb::numpy, float, nb::ndim<1>>(owned.data(), {owned.size()}, self);
          },
          "This rank's shard, for the optimizer to update: a NumPy view of float32. Where the "
          "codec\n"
          "rounds it is a master copy.")
      .def(
          "reduce_gradients",
          [](PyReplica& self, nb::handle gradient, nb::handle options, const nb::kwargs& changes) {
            const auto [array, made, values] = self.counted([&] {
              Array read = to_array(gradient, true, "gradient");
              const std::span<float> floats = to_floats(read, "gradient");
              return std::tuple(std::move(read), merged(options, changes), floats);
            });
            const CollectiveOptions value = made.value();
            return without_gil([&] { return self.get().reduce_gradients(values, value); });
          },
          "gradient"_a.none(), "options"_a.none() = nb::none(), "changes"_a,
          "Afterwards gradient[owned_range] holds the reduction; the rest is untouched.")
      .def(
          "broadcast_parameters",
          [](PyReplica& self) {
            return without_gil([&] { return self.get().broadcast_parameters(); });
          },
          "Sends the owned shard, receives the others'.")
      .def(
          "synchronize",
          [](PyReplica& self) { return without_gil([&] { return self.get().synchronize(); }); },
          "Exact: all replicas become bitwise equal to their owners' values.")
      .def("drift", [](const PyReplica& self) { return self.get().drift(); });
}

}  // namespace leeway::python
