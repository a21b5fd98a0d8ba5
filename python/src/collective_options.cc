#include "collective_options.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>

#include "bindings.h"
#include "codec.h"
#include "errors.h"
#include "numbers.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

// Reads an enumerator, given by its name or as an object of the enumeration.
template <typename Enum>
Enum named(nb::handle value, int count, const char* what) {
  const std::string text = nb::cast<std::string>(nb::str(value));
  std::string names;
  for (int i = 0; i < count; ++i) {
    const auto candidate = static_cast<Enum>(i);
    if (to_string(candidate) == text) return candidate;
    names += (i == 0 ? "" : ", ") + std::string(to_string(candidate));
  }
  throw Failure(Status::error(StatusCode::kInvalidArgument, "%s: %s is none of %s", what,
                              nb::repr(value).c_str(), names.c_str()));
}

nb::object text(std::string_view name) {
  return nb::str(name.data(), name.size());
}

Scalar to_scalar(nb::handle value) {
  if (!PyLong_Check(value.ptr())) return nb::cast<double>(value);
  std::int64_t integer = 0;
  if (nb::try_cast(value, integer)) return integer;
  return nb::cast<std::uint64_t>(value);
}

Delivery to_delivery(nb::handle value) {
  if (nb::isinstance<Delivery>(value)) return nb::cast<Delivery>(value);
  const std::string name = nb::isinstance<nb::str>(value) ? nb::cast<std::string>(value) : "";
  if (name == "exact") return exact();
  throw Failure(
      Status::error(StatusCode::kInvalidArgument,
                    "delivery: %s; give leeway.exact(), leeway.bounded(loss, deadline) or "
                    "leeway.best_effort(deadline)",
                    nb::repr(value).c_str()));
}

}  // namespace

// Table of the fields, with the functions by which Python sets and reads each.
class Fields {
 public:
  struct Field {
    const char* name;
    void (*set)(CallOptions& to, nb::handle value);
    nb::object (*get)(const CallOptions& from);
    const char* text;
  };
  static const std::vector<Field>& all();
  static const Field& of(std::string_view name);
};

const std::vector<Fields::Field>& Fields::all() {
  static const std::vector<Field> fields{
      {"op",
       [](CallOptions& to, nb::handle value) {
         to.options_.op = named<ReduceOp>(value, kReduceOpCount, "op");
       },
       [](const CallOptions& from) { return text(to_string(from.options_.op)); },
       "Of reductions: sum, avg, prod, min, max, premul_sum, band, bor, bxor."},
      {"factor", [](CallOptions& to, nb::handle value) { to.options_.factor = to_scalar(value); },
       [](const CallOptions& from) -> nb::object {
         const Scalar& factor = from.options_.factor;
         if (factor.fits<std::int64_t>()) return nb::int_(factor.as<std::int64_t>());
         if (factor.fits<std::uint64_t>()) return nb::int_(factor.as<std::uint64_t>());
         return nb::float_(factor.as<double>());
       },
       "premul_sum: what this rank's contribution is multiplied by; ranks may differ."},
      {"delivery",
       [](CallOptions& to, nb::handle value) { to.options_.delivery = to_delivery(value); },
       [](const CallOptions& from) { return nb::cast(from.options_.delivery); },
       "Of the reduce half, and of calls with one half: exact(), bounded() or best_effort()."},
      {"spread",
       [](CallOptions& to, nb::handle value) {
         to.options_.spread = named<Delivery::Kind>(value, 3, "spread");
       },
       [](const CallOptions& from) { return text(to_string(from.options_.spread)); },
       "Class of the spread half of an all_reduce: exact keeps all ranks bitwise equal."},
      {"codec",
       [](CallOptions& to, nb::handle value) { to.options_.codec = to_codec(value, "codec"); },
       [](const CallOptions& from) { return text(to_string(from.options_.codec)); },
       "How elements travel: \"native\", \"nvfp4\", \"mxfp4:floor:rotate\", \"luq:draws=2\", ..."},
      {"spread_codec",
       [](CallOptions& to, nb::handle value) {
         to.options_.spread_codec.reset();
         if (!value.is_none()) to.options_.spread_codec = to_codec(value, "spread_codec");
       },
       [](const CallOptions& from) {
         return from.options_.spread_codec ? text(to_string(*from.options_.spread_codec))
                                           : nb::none();
       },
       "Of the spread half; None: the same as codec."},
      {"estimator",
       [](CallOptions& to, nb::handle value) {
         to.options_.estimator = named<Estimator>(value, 6, "estimator");
       },
       [](const CallOptions& from) { return text(to_string(from.options_.estimator)); },
       "Of lossy sums and averages: zero_fill, ratio, symmetric_ratio, stratified,\n"
       "horvitz_thompson or augmented."},
      {"weight",
       [](CallOptions& to, nb::handle value) { to.options_.weight = nb::cast<double>(value); },
       [](const CallOptions& from) -> nb::object { return nb::float_(from.options_.weight); },
       "Units of work behind this rank's contribution: 0, or 2**-64 to 2**64."},
      {"owner_weights",
       [](CallOptions& to, nb::handle value) {
         to.owner_weights_ =
             value.is_none() ? std::vector<double>() : nb::cast<std::vector<double>>(value);
       },
       [](const CallOptions& from) { return nb::cast(from.owner_weights_); },
       "Weights by owner, one for each rank; replaces weight."},
      {"tag",
       [](CallOptions& to, nb::handle value) { to.options_.tag = nb::cast<std::uint32_t>(value); },
       [](const CallOptions& from) -> nb::object { return nb::int_(from.options_.tag); },
       "Of send and recv: a receive takes messages of its own tag only."},
      {"confirm_use",
       [](CallOptions& to, nb::handle value) { to.options_.confirm_use = nb::cast<bool>(value); },
       [](const CallOptions& from) -> nb::object { return nb::bool_(from.options_.confirm_use); },
       "Wait until every owner has said whether it used this rank's contribution."},
      {"keep_non_finite",
       [](CallOptions& to, nb::handle value) {
         to.options_.keep_non_finite = nb::cast<bool>(value);
       },
       [](const CallOptions& from) -> nb::object {
         return nb::bool_(from.options_.keep_non_finite);
       },
       "Lossy sums take contributions with infinities and NaNs, as a loss scaler needs; False:\n"
       "such packets count as missing (Report.non_finite)."},
      {"control_variate",
       [](CallOptions& to, nb::handle value) {
         to.control_variate_ = {};
         if (value.is_none()) return;
         to.control_variate_ = to_array(value, false, "control_variate");
         (void)to_floats(to.control_variate_, "control_variate");
       },
       [](const CallOptions& from) -> nb::object {
         return from.control_variate_.owner ? from.control_variate_.owner : nb::none();
       },
       "augmented: a float32 guess of the result with the tensor's full count."},
      {"residual",
       [](CallOptions& to, nb::handle value) {
         to.residual_ = {};
         if (value.is_none()) return;
         to.residual_ = to_array(value, true, "residual");
         (void)to_floats(to.residual_, "residual");
       },
       [](const CallOptions& from) -> nb::object {
         return from.residual_.owner ? from.residual_.owner : nb::none();
       },
       "Error feedback: float32, the input's full count, zeros before the first call."},
  };
  return fields;
}

const Fields::Field& Fields::of(std::string_view name) {
  std::string names;
  for (const Field& field : all()) {
    if (field.name == name) return field;
    names += (names.empty() ? "" : ", ") + std::string(field.name);
  }
  throw Failure(Status::error(StatusCode::kInvalidArgument,
                              "CollectiveOptions has no %.*s; it has %s",
                              static_cast<int>(name.size()), name.data(), names.c_str()));
}

CollectiveOptions CallOptions::value() const {
  CollectiveOptions options = options_;
  options.owner_weights = owner_weights_;
  if (control_variate_.owner) options.control_variate = to_floats(control_variate_, "");
  if (residual_.owner) options.residual = to_floats(residual_, "");
  return options;
}

void CallOptions::set(std::string_view field, nb::handle to) {
  const Fields::Field& found = Fields::of(field);
  try {
    found.set(*this, to);
  } catch (const nb::cast_error&) {
    throw Failure(Status::error(StatusCode::kInvalidArgument, "%s: %s does not fit; %s", found.name,
                                nb::repr(to).c_str(), found.text));
  }
}

nb::object CallOptions::get(std::string_view field) const {
  return Fields::of(field).get(*this);
}

CallOptions merged(nb::handle options, const nb::kwargs& changes) {
  CallOptions made;
  if (nb::isinstance<CallOptions>(options)) {
    made = nb::cast<const CallOptions&>(options);
  } else if (!options.is_none()) {
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "options: %s is not a leeway.CollectiveOptions",
                                nb::repr(options).c_str()));
  }
  for (const auto [name, value] : changes) made.set(nb::cast<std::string>(name), value);
  return made;
}

void bind_collective_options(nb::module_& module) {
  nb::class_<Delivery>(module, "Delivery",
                       "The promise of one call: exact(), bounded() or best_effort() make one.")
      .def_prop_ro("kind", [](const Delivery& self) { return text(to_string(self.kind)); })
      .def_ro("loss_max", &Delivery::loss_max, "bounded: the part that may be missing, 0 to 1")
      .def_prop_ro(
          "deadline", [](const Delivery& self) { return to_seconds(self.deadline); },
          "seconds from the call; infinity: none")
      .def("__repr__", [](const Delivery& self) {
        const std::string name(to_string(self.kind));
        const std::string seconds = nb::str(nb::float_(to_seconds(self.deadline))).c_str();
        if (self.kind != Delivery::Kind::bounded) return name + "(" + seconds + ")";
        return name + "(" + nb::str(nb::float_(self.loss_max)).c_str() + ", " + seconds + ")";
      });
  module.def(
      "exact", [](nb::handle deadline) { return exact(to_duration(deadline, "deadline")); },
      nb::arg("deadline").none() = 60.0,
      "Every element by the deadline (seconds, \"20ms\", or None), or an error that names rank,\n"
      "operation, peer and deadline.");
  module.def(
      "bounded",
      [](double loss_max, nb::handle deadline) {
        if (!(loss_max >= 0 && loss_max <= 1))
          throw Failure(Status::error(
              StatusCode::kInvalidArgument,
              "bounded(): loss_max is %g, and not a part from 0 to 1 (0.05 is 5 %%)", loss_max));
        return bounded(loss_max, to_duration(deadline, "deadline"));
      },
      nb::arg("loss_max"), nb::arg("deadline").none(),
      "Repairs until at most loss_max (0 to 1) of the packets is missing, or time is up.");
  module.def(
      "best_effort",
      [](nb::handle deadline) { return best_effort(to_duration(deadline, "deadline")); },
      nb::arg("deadline").none(),
      "Sends once. Ends when all came, when senders are done and the network is quiet, or at the\n"
      "deadline.");

  auto options = nb::class_<CallOptions>(
      module, "CollectiveOptions",
      "How one call is done. Made with its fields as keywords; the defaults are exact.\n\n"
      "CollectiveOptions(delivery=best_effort(\"20ms\"), codec=\"nvfp4\", op=\"avg\", weight=32)");
  options
      .def("__init__",
           [](CallOptions* self, const nb::kwargs& fields) {
             new (self) CallOptions(merged(nb::none(), fields));
           })
      .def(
          "replace",
          [](nb::handle self, const nb::kwargs& changes) { return merged(self, changes); },
          "A copy with these fields changed.")
      .def("__repr__", [](const CallOptions& self) {
        const CallOptions defaults;
        std::string shown;
        for (const Fields::Field& field : Fields::all()) {
          const nb::str value = nb::repr(field.get(self));
          if (nb::repr(field.get(defaults)).equal(value)) continue;
          shown += (shown.empty() ? "" : ", ") + std::string(field.name) + "=" + value.c_str();
        }
        return "CollectiveOptions(" + shown + ")";
      });
  for (const Fields::Field& field : Fields::all()) {
    options.def_prop_rw(
        field.name, [&field](const CallOptions& self) { return field.get(self); },
        [&field](CallOptions& self, nb::handle value) { self.set(field.name, value); },
        nb::for_setter(nb::arg("value").none()), field.text);
  }
}

}  // namespace leeway::python
