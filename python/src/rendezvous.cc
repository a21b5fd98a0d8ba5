// Bindings of the stores where ranks meet, and stores written in Python.
#include "leeway/rendezvous.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "numbers.h"
#include "rendezvous.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace leeway::python {
namespace {

nb::bytes to_bytes(ByteSpan value) {
  return nb::bytes(value.data(), value.size());
}

ByteSpan to_span(const nb::bytes& value) {
  return {static_cast<const std::byte*>(value.data()), value.size()};
}

Status failed(const char* call, const nb::python_error& error) {
  return Status::error(StatusCode::kUnavailable, "the store's %s() raised %s: %s", call,
                       nb::str(error.type().attr("__name__")).c_str(),
                       nb::str(error.value()).c_str());
}

// A Python object with put() and get(). Leeway calls it from threads of its own.
class PythonStore final : public Rendezvous {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}
  ~PythonStore() override {
    WithGil hold;
    store_.reset();
  }

  Status put(std::string_view key, ByteSpan value) override {
    WithGil hold;
    try {
      store_.attr("put")(nb::str(key.data(), key.size()), to_bytes(value));
      return {};
    } catch (nb::python_error& error) {
      return failed("put", error);
    }
  }

  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override {
    WithGil hold;
    try {
      const nb::object value = store_.attr("get")(nb::str(key.data(), key.size()),
                                                  to_seconds(std::max(patience, Duration(0))));
      if (value.is_none()) {
        return Status::error(StatusCode::kDeadlineExceeded, "%.*s is not in the store",
                             static_cast<int>(key.size()), key.data());
      }
      const ByteSpan bytes = to_span(nb::cast<nb::bytes>(value));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    } catch (nb::python_error& error) {
      return failed("get", error);
    } catch (const nb::cast_error&) {
      return Status::error(StatusCode::kUnavailable, "the store's get() returned no bytes");
    }
  }

 private:
  nb::object store_;
};

using MakeTcp = Result<std::shared_ptr<TcpRendezvous>>(std::string_view,
                                                       const TcpRendezvous::Security&);

// Defines a static method of TcpRendezvous with the fields of Security as keywords.
template <typename Address>
void def_tcp(nb::class_<TcpRendezvous, Rendezvous>& to, const char* name, MakeTcp* make,
             const Address& address, const char* documentation) {
  to.def_static(
      name,
      [make](const std::string& at, const std::string& secret_file, bool insecure,
             const std::string& tls_ca, const std::string& tls_cert, const std::string& tls_key) {
        TcpRendezvous::Security security;
        security.secret_file = secret_file;
        security.insecure = insecure;
        security.tls_ca = tls_ca;
        security.tls_certificate = tls_cert;
        security.tls_key = tls_key;
        return value_of(make(at, security));
      },
      address, "secret_file"_a = "", "insecure"_a = false, "tls_ca"_a = "",
      "tls_certificate"_a = "", "tls_key"_a = "", documentation);
}

}  // namespace

std::shared_ptr<Rendezvous> to_rendezvous(nb::handle value) {
  if (nb::isinstance<Rendezvous>(value)) return nb::cast<std::shared_ptr<Rendezvous>>(value);
  if (nb::hasattr(value, "put") && nb::hasattr(value, "get"))
    return std::make_shared<PythonStore>(nb::borrow(value));
  throw Failure(Status::error(StatusCode::kInvalidArgument,
                              "store: %s has no put(key, value) and get(key, seconds)",
                              nb::repr(value).c_str()));
}

void bind_rendezvous(nb::module_& module) {
  nb::class_<Rendezvous>(
      module, "Rendezvous",
      "A store of keys and values in which ranks meet (option `store`).\n\n"
      "So is any object with put(key: str, value: bytes), and get(key: str, seconds: float): the\n"
      "value as soon as there is one, None after `seconds`. Both are called from threads of "
      "Leeway's\n"
      "own, at the same time.")
      .def(
          "put",
          [](Rendezvous& self, const std::string& key, const nb::bytes& value) {
            const ByteSpan bytes = to_span(value);
            Status status;
            {
              WithoutGil free;
              status = self.put(key, bytes);
            }
            check(status);
          },
          "key"_a, "value"_a)
      .def(
          "get",
          [](Rendezvous& self, const std::string& key, nb::handle seconds) -> nb::object {
            const Duration patience = to_duration(seconds, "seconds");
            const auto value = [&] {
              WithoutGil free;
              return self.get(key, patience);
            }();
            if (value.status().code() == StatusCode::kDeadlineExceeded) return nb::none();
            check(value.status());
            return to_bytes(*value);
          },
          "key"_a, "seconds"_a = 0.0);
  nb::class_<TcpRendezvous, Rendezvous> tcp(
      module, "TcpRendezvous",
      "A store over TCP, whose server one process owns. secret_file, tls_ca, tls_certificate,\n"
      "tls_key, insecure: as in Options, of both sides.");
  def_tcp(tcp, "serve", &TcpRendezvous::serve, "address"_a = "127.0.0.1:0",
          "Owns a server at \"host:port\", until the object is gone. Port 0: a free one.");
  def_tcp(tcp, "connect", &TcpRendezvous::connect, "address"_a, "Talks to the server there.");
  tcp.def_prop_ro("address", &TcpRendezvous::address, "\"host:port\" for connect()");
  nb::class_<FileRendezvous, Rendezvous>(module, "FileRendezvous",
                                         "A folder that all ranks see, on NFS for example.")
      .def(nb::init<std::string>(), "folder"_a);
  nb::class_<InprocRendezvous, Rendezvous>(module, "InprocRendezvous",
                                           "The memory of one process, for ranks that are threads.")
      .def(nb::init<>());
}

}  // namespace leeway::python
