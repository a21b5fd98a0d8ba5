#include "errors.h"

#include <array>
#include <string>

#include "bindings.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

struct Kind {
  StatusCode code;
  const char* name;
  PyObject* (*also)();  // the built-in exception that callers may catch as well
  const char* text;
};

constexpr std::array kKinds{
    Kind{StatusCode::kInvalidArgument, "InvalidArgumentError", [] { return PyExc_ValueError; },
         "The caller's argument is wrong. Nothing was sent."},
    Kind{StatusCode::kMismatch, "MismatchError", [] { return PyExc_ValueError; },
         "Two ranks disagree about a call: its size, type, codec or kind. The text names both."},
    Kind{StatusCode::kDeadlineExceeded, "DeadlineExceededError", [] { return PyExc_TimeoutError; },
         "An exact call was not complete in time. The text names rank, operation, peer and "
         "deadline."},
    Kind{StatusCode::kPeerLost, "PeerLostError", [] { return PyExc_ConnectionError; },
         "A peer said good-bye, or its process is dead."},
    Kind{StatusCode::kUnavailable, "UnavailableError", [] { return PyExc_ConnectionError; },
         "The rendezvous or a part of the network cannot be reached. Trying again may help."},
    Kind{StatusCode::kResourceExhausted, "ResourceExhaustedError",
         [] { return PyExc_RuntimeError; }, "A limit of Leeway or of the machine was reached."},
    Kind{StatusCode::kUnsupported, "UnsupportedError", [] { return PyExc_NotImplementedError; },
         "What was asked for has no meaning, or is not built in."},
    Kind{StatusCode::kCancelled, "CancelledError", [] { return PyExc_RuntimeError; },
         "The communicator was aborted or closed while the call was in flight."},
    Kind{StatusCode::kInternal, "InternalError", [] { return PyExc_RuntimeError; },
         "A defect of Leeway."},
};

// Exception classes by code. Owned for the life of the process, as extension types are.
std::array<PyObject*, 16> exceptions{};

nb::object make(const char* name, const char* text, nb::handle bases, nb::dict attributes) {
  attributes["__doc__"] = text;
  attributes["__module__"] = "leeway";
  return nb::steal(
      PyErr_NewException((std::string("leeway.") + name).c_str(), bases.ptr(), attributes.ptr()));
}

}  // namespace

void set_python_error(const Status& status) {
  PyErr_SetString(exceptions.at(static_cast<std::size_t>(status.code())), status.c_str());
}

void bind_errors(nb::module_& module) {
  const nb::object base =
      make("Error", "What every failed call of Leeway raises. `code` is its name: \"mismatch\".",
           nb::handle(PyExc_Exception), nb::dict());
  module.attr("Error") = base;
  for (const Kind& kind : kKinds) {
    nb::dict attributes;
    const std::string_view code = to_string(kind.code);
    attributes["code"] = nb::str(code.data(), code.size());
    nb::object made =
        make(kind.name, kind.text, nb::make_tuple(base, nb::handle(kind.also())), attributes);
    module.attr(kind.name) = made;
    exceptions.at(static_cast<std::size_t>(kind.code)) = made.release().ptr();
  }
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      set_python_error(failure.status());
    } catch (const nb::cast_error&) {
      set_python_error(Status::error(StatusCode::kInvalidArgument,
                                     "an argument has a type that this call does not take"));
    }
  });
}

}  // namespace leeway::python
