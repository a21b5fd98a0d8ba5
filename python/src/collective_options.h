// CollectiveOptions together with the Python objects that they point into.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "arrays.h"
#include "leeway/options.h"

namespace leeway::python {

class CallOptions {
 public:
  // The options for the library. Valid while this object exists unchanged.
  CollectiveOptions value() const;
  // Sets and gets one field, by its name in CollectiveOptions. Throws if there is no such field or
  // the value does not fit it.
  void set(std::string_view field, nanobind::handle to);
  nanobind::object get(std::string_view field) const;

  // Memory that the call reads or writes until it is done.
  const nanobind::object& control_variate() const { return control_variate_.owner; }
  const nanobind::object& residual() const { return residual_.owner; }

 private:
  friend class Fields;
  CollectiveOptions options_;
  std::vector<double> owner_weights_;
  Array control_variate_;
  Array residual_;
};

// Returns `options` (None, or CollectiveOptions) with the fields in `changes` set.
CallOptions merged(nanobind::handle options, const nanobind::kwargs& changes);

}  // namespace leeway::python
