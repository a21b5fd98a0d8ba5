// leeway.torch._c10d_<version>: registers the classes that torch needs to see.
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "backend.h"

namespace py = pybind11;

namespace leeway::torch_backend {
namespace {

template <typename Value>
Value parsed(Result<Value>&& result) {
  if (!result.ok()) throw py::value_error(result.status().c_str());
  return std::move(*result);
}

Delivery delivery_of(const std::string& kind, double loss_max, double seconds) {
  const Duration deadline =
      seconds > 9e9 ? no_deadline : Duration(static_cast<std::int64_t>(seconds * 1e9));
  if (kind == "best_effort") return best_effort(deadline);
  if (kind == "bounded") return bounded(loss_max, deadline);
  return exact(deadline);
}

}  // namespace
}  // namespace leeway::torch_backend

PYBIND11_MODULE(LEEWAY_TORCH_MODULE, module) {
  using namespace leeway;
  using namespace leeway::torch_backend;
  py::module_::import("torch._C._distributed_c10d");
  py::class_<BackendOptions, c10d::Backend::Options, c10::intrusive_ptr<BackendOptions>>(
      module, "BackendOptions")
      .def(py::init(
               [](const std::string& name) { return c10::make_intrusive<BackendOptions>(name); }),
           py::arg("name") = kBackendName)
      .def_readwrite("lossy_min_bytes", &BackendOptions::lossy_min_bytes)
      .def("set_gradients",
           [](BackendOptions& self, const std::string& delivery, double loss_max, double seconds,
              const std::string& codec, const std::string& estimator) {
             CollectiveOptions options;
             options.delivery = delivery_of(delivery, loss_max, seconds);
             options.codec = parsed(parse_codec(codec));
             options.estimator = parsed(parse_estimator(estimator));
             self.gradients = options;
           });
  py::class_<LeewayBackend, c10d::Backend, c10::intrusive_ptr<LeewayBackend>>(module, "Backend");
  module.def("shutdown_all", &LeewayBackend::shutdown_all,
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, const std::string& group,
         std::chrono::milliseconds timeout, const c10::intrusive_ptr<BackendOptions>& options,
         const std::string& name) {
        return LeewayBackend::create(store, rank, size, group, timeout, options, name);
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("group"), py::arg("timeout"),
      py::arg("options"), py::arg("name"), py::call_guard<py::gil_scoped_release>());
}
