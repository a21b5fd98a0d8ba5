// C functions for stores where ranks meet: Leeway's own, and those made of callbacks.
#include "leeway/c/rendezvous.h"

#include "c_abi/handles.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

using namespace leeway;
using namespace leeway::c_abi;

namespace {

constexpr leeway_store_callbacks kStoreDefaults = LEEWAY_STORE_CALLBACKS_INIT;

// A store made of the program's callbacks.
class CallbackRendezvous final : public Rendezvous {
 public:
  explicit CallbackRendezvous(const leeway_store_callbacks& callbacks) : callbacks_(callbacks) {}
  ~CallbackRendezvous() override {
    if (callbacks_.destroy != nullptr) callbacks_.destroy(callbacks_.user);
  }

  Status put(std::string_view key, ByteSpan value) override {
    leeway_fail(LEEWAY_OK, "");
    return status_of(
        callbacks_.put(callbacks_.user, std::string(key).c_str(), value.data(), value.size()),
        "put");
  }

  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override {
    leeway_value value;
    leeway_fail(LEEWAY_OK, "");
    LEEWAY_C_TRY(status_of(
        callbacks_.get(callbacks_.user, std::string(key).c_str(), patience.count(), &value),
        "get"));
    if (value.set) return std::move(value.bytes);
    return Status::error(StatusCode::kInternal,
                         "the callback get returned LEEWAY_OK without leeway_value_set()");
  }

  Status erase(std::string_view key) override {
    if (callbacks_.erase == nullptr) return Status();
    leeway_fail(LEEWAY_OK, "");
    return status_of(callbacks_.erase(callbacks_.user, std::string(key).c_str()), "erase");
  }

 private:
  const leeway_store_callbacks callbacks_;
};

Result<TcpRendezvous::Security> security_of(const leeway_tcp_security* given) {
  constexpr leeway_tcp_security kPlain = LEEWAY_TCP_SECURITY_INIT;
  const auto read = read_sized("leeway_tcp_security", given, kPlain);
  if (!read.ok()) return read.status();
  const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
  TcpRendezvous::Security security;
  security.secret_file = text(read->secret_file);
  security.insecure = read->insecure != 0;
  security.tls_ca = text(read->tls_ca);
  security.tls_certificate = text(read->tls_certificate);
  security.tls_key = text(read->tls_key);
  return security;
}

template <typename Store>
Status hand_out(std::shared_ptr<Store> made, leeway_rendezvous** store) {
  auto handle = std::make_unique<leeway_rendezvous>();
  if constexpr (std::is_same_v<Store, TcpRendezvous>) handle->address = made->address();
  handle->value = std::move(made);
  *store = handle.release();
  return Status();
}

// Hands out the TCP store that `make` returns. Returns an error if `address` is NULL.
template <typename Make>
leeway_status tcp_store(const char* function, const char* address, leeway_rendezvous** store,
                        Make&& make) {
  return guarded(function, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "store", store));
    LEEWAY_C_TRY(must_be_there(name, "address", address));
    Result<std::shared_ptr<TcpRendezvous>> made = make();
    return made.ok() ? hand_out(std::move(*made), store) : made.status();
  });
}

}  // namespace

leeway_status leeway_value_set(leeway_value* value, const void* data, std::size_t bytes) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "value", value));
    LEEWAY_C_TRY(must_be_there(name, "data", data, bytes));
    const auto* first = static_cast<const std::byte*>(data);
    value->bytes.assign(first, first + bytes);
    value->set = true;
    return Status();
  });
}

leeway_status leeway_rendezvous_create(const leeway_store_callbacks* callbacks,
                                       leeway_rendezvous** store) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "store", store));
    const auto read = read_sized("leeway_store_callbacks", callbacks, kStoreDefaults);
    if (!read.ok()) return read.status();
    LEEWAY_C_TRY(must_be_there(name, "put", reinterpret_cast<const void*>(read->put)));
    LEEWAY_C_TRY(must_be_there(name, "get", reinterpret_cast<const void*>(read->get)));
    return hand_out(std::make_shared<CallbackRendezvous>(*read), store);
  });
}

leeway_status leeway_rendezvous_serve_tcp(const char* address, leeway_rendezvous** store) {
  return tcp_store(__func__, address, store, [&] { return TcpRendezvous::serve(address); });
}

leeway_status leeway_rendezvous_connect_tcp(const char* address, leeway_rendezvous** store) {
  return tcp_store(__func__, address, store, [&] { return TcpRendezvous::connect(address); });
}

leeway_status leeway_rendezvous_serve_tcp_secure(const char* address,
                                                 const leeway_tcp_security* security,
                                                 leeway_rendezvous** store) {
  return tcp_store(__func__, address, store, [&] {
    const auto read = security_of(security);
    return read.ok() ? TcpRendezvous::serve(address, *read) : read.status();
  });
}

leeway_status leeway_rendezvous_connect_tcp_secure(const char* address,
                                                   const leeway_tcp_security* security,
                                                   leeway_rendezvous** store) {
  return tcp_store(__func__, address, store, [&] {
    const auto read = security_of(security);
    return read.ok() ? TcpRendezvous::connect(address, *read) : read.status();
  });
}

leeway_status leeway_rendezvous_in_folder(const char* folder, leeway_rendezvous** store) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "store", store));
    LEEWAY_C_TRY(must_be_there(name, "folder", folder));
    return hand_out(std::make_shared<FileRendezvous>(folder), store);
  });
}

leeway_status leeway_rendezvous_in_process(leeway_rendezvous** store) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "store", store));
    return hand_out(std::make_shared<InprocRendezvous>(), store);
  });
}

const char* leeway_rendezvous_address(const leeway_rendezvous* store) {
  return store != nullptr ? store->address.c_str() : "";
}

leeway_status leeway_rendezvous_put(leeway_rendezvous* store, const char* key, const void* data,
                                    std::size_t bytes) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "store", store));
    LEEWAY_C_TRY(must_be_there(name, "key", key));
    LEEWAY_C_TRY(must_be_there(name, "data", data, bytes));
    return store->value->put(key, {static_cast<const std::byte*>(data), bytes});
  });
}

leeway_status leeway_rendezvous_get(leeway_rendezvous* store, const char* key,
                                    std::int64_t patience_ns, void* data, std::size_t capacity,
                                    std::size_t* bytes) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "store", store));
    LEEWAY_C_TRY(must_be_there(name, "key", key));
    LEEWAY_C_TRY(must_be_there(name, "data", data, capacity));
    LEEWAY_C_TRY(must_be_there(name, "bytes", bytes));
    const auto value = store->value->get(key, Duration(patience_ns));
    if (!value.ok()) return value.status();
    *bytes = value->size();
    if (value->size() > capacity) {
      return Status::error(StatusCode::kResourceExhausted,
                           "leeway_rendezvous_get: the value has %zu bytes, there is room for %zu",
                           value->size(), capacity);
    }
    if (!value->empty()) std::memcpy(data, value->data(), value->size());
    return Status();
  });
}

leeway_status leeway_rendezvous_erase(leeway_rendezvous* store, const char* key) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "store", store));
    LEEWAY_C_TRY(must_be_there(name, "key", key));
    return store->value->erase(key);
  });
}

void leeway_rendezvous_free(leeway_rendezvous* store) {
  delete store;
}
