// Bindings of ComputeBudget (DropCompute).
#include "leeway/compute_budget.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <string>

#include "bindings.h"
#include "communicator.h"
#include "errors.h"
#include "gil.h"
#include "numbers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace leeway::python {
namespace {

ComputeThreshold to_threshold(nb::handle value) {
  if (value.is_none()) return no_threshold;
  if (nb::isinstance<nb::str>(value) && nb::cast<std::string>(value) == "auto")
    return auto_threshold;
  return ComputeThreshold(to_duration(value, "threshold"));
}

std::uint32_t to_count(nb::handle value, const char* what) {
  return static_cast<std::uint32_t>(
      to_number(value, what, 0, std::numeric_limits<std::uint32_t>::max()));
}

double to_part(nb::handle value, const char* what) {
  double part = 0;
  if (nb::try_cast(value, part)) return part;
  refuse("%s: %s is no number", what, nb::repr(value).c_str());
}

template <typename Enum>
Enum choice(nb::handle value, std::initializer_list<std::pair<const char*, Enum>> names,
            const char* what) {
  const auto text = nb::cast<std::string>(nb::str(value));
  std::string all;
  for (const auto& [name, meant] : names) {
    if (text == name) return meant;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  throw Failure(Status::error(StatusCode::kInvalidArgument, "%s: %s is none of %s", what,
                              text.c_str(), all.c_str()));
}

class PyComputeBudget {
 public:
  PyComputeBudget(nb::object communicator, const ComputeBudgetOptions& options)
      : communicator_(std::move(communicator)) {
    auto made = [&] {
      Communicator& group = to_communicator(communicator_).get();
      WithoutGil free;
      return ComputeBudget::create(group, options);
    }();
    budget_ = value_of(std::move(made));
  }
  ~PyComputeBudget() {
    WithoutGil free;
    budget_.reset();
  }
  // Throws if the communicator was closed, because the library does not check that.
  ComputeBudget& get() const {
    (void)to_communicator(communicator_).get();
    return *budget_;
  }

 private:
  nb::object communicator_;
  std::unique_ptr<ComputeBudget> budget_;
};

void bind_counts(nb::module_& module) {
  using C = ComputeCounts;
  nb::class_<C>(module, "ComputeCounts", "Counts of ended steps.")
      .def_ro("steps", &C::steps)
      .def_ro("steps_stopped", &C::steps_stopped, "before their last micro-batch")
      .def_ro("planned", &C::planned, "micro-batches")
      .def_ro("completed", &C::completed)
      .def_ro("dropped", &C::dropped)
      .def_ro("aborted", &C::aborted, "of the dropped ones: begun, and given up by should_stop()")
      .def_ro("clock_clamps", &C::clock_clamps)
      .def_ro("latency_clamps", &C::latency_clamps)
      .def_ro("threshold_clamps", &C::threshold_clamps);
  using E = ThresholdEstimate;
  nb::class_<E>(module, "ThresholdEstimate", "From the micro-batches of all ranks in one window.")
      .def_prop_ro(
          "threshold", [](const E& self) { return to_seconds(self.threshold); }, "seconds")
      .def_ro("drop_rate", &E::drop_rate)
      .def_ro("time_cut", &E::time_cut)
      .def_ro("effective_speedup", &E::effective_speedup)
      .def_ro("predicted_threshold_s", &E::predicted_threshold_s)
      .def_ro("predicted_drop_rate", &E::predicted_drop_rate)
      .def_ro("predicted_effective_speedup", &E::predicted_effective_speedup)
      .def_ro("micro_batch_mean_s", &E::micro_batch_mean_s)
      .def_ro("micro_batch_deviation_s", &E::micro_batch_deviation_s)
      .def_ro("overhead_s", &E::overhead_s);
  using S = ComputeStatistics;
  nb::class_<S>(module, "ComputeStatistics", "Since creation.")
      .def_ro("local", &S::local, "of this rank")
      .def_ro("all_ranks", &S::global, "as of the last exchange or synchronize()")
      .def_ro("exchanges", &S::exchanges)
      .def_ro("exchange_waits", &S::exchange_waits)
      .def_ro("exchange_failures", &S::exchange_failures)
      .def_ro("estimates", &S::estimates)
      .def_ro("drifts", &S::drifts)
      .def_ro("estimate", &S::estimate, "the last one put in force, or None");
}

}  // namespace

void bind_compute_budget(nb::module_& module) {
  bind_counts(module);
  nb::class_<PyComputeBudget>(
      module, "ComputeBudget",
      "How long a rank computes before it joins the reduction with what it has (DropCompute).\n\n"
      "while budget.next_micro_batch(): ...; then all_reduce(gradient, op=\"avg\",\n"
      "weight=budget.weight): the mean per completed micro-batch.")
      .def(
          "__init__",
          [](PyComputeBudget* self, nb::object communicator, nb::handle micro_batches,
             nb::handle threshold, nb::handle warm_up_steps, nb::handle micro_batches_min,
             nb::handle normalisation, nb::handle compensation, nb::handle window_steps,
             nb::handle reestimate_steps, nb::handle drift_tolerance,
             nb::handle exchange_deadline) {
            const auto options = read_counted(to_communicator(communicator), [&] {
              ComputeBudgetOptions read;
              read.micro_batches = to_count(micro_batches, "micro_batches");
              read.threshold = to_threshold(threshold);
              read.warm_up_steps = to_count(warm_up_steps, "warm_up_steps");
              read.micro_batches_min = to_count(micro_batches_min, "micro_batches_min");
              read.normalisation =
                  choice<Normalisation>(normalisation,
                                        {{"realised_weight", Normalisation::realised_weight},
                                         {"fixed_maximum", Normalisation::fixed_maximum}},
                                        "normalisation");
              read.compensation =
                  choice<DropCompensation>(compensation,
                                           {{"none", DropCompensation::none},
                                            {"extra_steps", DropCompensation::extra_steps},
                                            {"requeue", DropCompensation::requeue}},
                                           "compensation");
              read.window_steps = to_count(window_steps, "window_steps");
              read.reestimate_steps = to_count(reestimate_steps, "reestimate_steps");
              read.drift_tolerance = to_part(drift_tolerance, "drift_tolerance");
              read.exchange_deadline = to_duration(exchange_deadline, "exchange_deadline");
              return read;
            });
            new (self) PyComputeBudget(std::move(communicator), options);
          },
          "communicator"_a.none(), "micro_batches"_a.none(), nb::kw_only(),
          "threshold"_a.none() = "auto", "warm_up_steps"_a.none() = 6,
          "micro_batches_min"_a.none() = 1, "normalisation"_a.none() = "realised_weight",
          "compensation"_a.none() = "none", "window_steps"_a.none() = 44,
          "reestimate_steps"_a.none() = 1000, "drift_tolerance"_a.none() = 0.1,
          "exchange_deadline"_a.none() = 30.0,
          "threshold: \"auto\", a time (0.55, \"550ms\"), or None. A collective call.")
      .def(
          "next_micro_batch",
          [](PyComputeBudget& self) {
            ComputeBudget& budget = self.get();
            WithoutGil free;
            return budget.next_micro_batch();
          },
          "True: run another micro-batch; the one before counts. False: the step is over.")
      .def(
          "should_stop", [](PyComputeBudget& self) { return self.get().should_stop(); },
          "Between forward and backward. True: the one that runs does not count; leave the loop.")
      .def_prop_ro(
          "weight", [](const PyComputeBudget& self) { return self.get().weight(); },
          "for the reduction of the step's gradient")
      .def_prop_ro("completed", [](const PyComputeBudget& self) { return self.get().completed(); })
      .def_prop_ro(
          "dropped",
          [](const PyComputeBudget& self) {
            const MicroBatchRange range = self.get().dropped();
            return std::pair(range.first, range.count);
          },
          "(first, count): micro-batches that were planned for the step and not completed")
      .def_prop_ro("micro_batch",
                   [](const PyComputeBudget& self) { return self.get().micro_batch(); })
      .def(
          "steps_due",
          [](const PyComputeBudget& self, nb::handle planned) {
            const std::int64_t steps =
                to_number(planned, "steps_planned", 0, std::numeric_limits<std::int64_t>::max());
            return self.get().steps_due(static_cast<std::uint64_t>(steps));
          },
          "steps_planned"_a.none())
      .def_prop_ro(
          "threshold",
          [](const PyComputeBudget& self) { return to_seconds(self.get().threshold()); },
          "in force, seconds; infinity: none")
      .def("statistics", [](const PyComputeBudget& self) { return self.get().statistics(); })
      .def_prop_ro(
          "explain",
          [](const PyComputeBudget& self) { return std::string(self.get().status().text()); },
          "what is out of order; empty: nothing")
      .def("synchronize", [](PyComputeBudget& self) {
        const Status status = [&] {
          WithoutGil free;
          return self.get().synchronize();
        }();
        check(status);
      });
}

}  // namespace leeway::python
