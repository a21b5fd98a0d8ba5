// The functions behind all versions of the plugin. Each is a function of C: no exception leaves it.
#include "interop/nccl_net/functions.h"

#include <climits>
#include <cstring>
#include <exception>
#include <new>

#include "interop/nccl_net/background.h"
#include "interop/nccl_net/devices.h"
#include "interop/nccl_net/process.h"

namespace leeway::nccl_net {
namespace {

using nccl::kSuccess;
using nccl::UniqueId;

template <typename Call>
leeway_nccl_result guarded(Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed(Status::error(StatusCode::kResourceExhausted, "out of memory"), "a call");
  } catch (const std::exception& error) {
    return failed(Status::error(StatusCode::kInternal, "%s", error.what()), "a call");
  }
}

Code refused(const char* what, const char* why) {
  return failed(Status::error(StatusCode::kInvalidArgument, "%s", why), what);
}

bool exists(int device) {
  const auto count = static_cast<int>(Process::get().devices().size());
  return device >= 0 && device < count;
}

leeway_nccl_result init(leeway_nccl_logger logger) {
  return guarded([&]() -> Code {
    log_to(logger);
    Process& process = Process::get();
    if (const Status status = process.init(); !status.ok()) return failed(status, "init");
    for (const Device& device : process.devices()) {
      inform("%s, %d Mbit/s%s", device.name.c_str(), device.speed_mbps,
             process.settings().seal ? ", sealed" : "");
    }
    return kSuccess;
  });
}

leeway_nccl_result devices(int* count) {
  return guarded([&]() -> Code {
    *count = static_cast<int>(Process::get().devices().size());
    return kSuccess;
  });
}

leeway_nccl_result properties(int device, leeway_nccl_net_properties_v12* out) {
  return guarded([&]() -> Code {
    if (!exists(device)) return refused("getProperties", "there is no such device");
    *out = properties_of(Process::get().devices()[static_cast<std::size_t>(device)], device);
    return kSuccess;
  });
}

leeway_nccl_result listen(int device, void* handle, void** out) {
  return guarded([&]() -> Code {
    if (!exists(device)) return refused("listen", "there is no such device");
    auto listener = Process::get().listen(device);
    if (!listener.ok()) return failed(listener.status(), "listen");
    const leeway_nccl_id id = (*listener)->id.encode(UniqueId::Use::connection);
    static_assert(sizeof id == LEEWAY_NCCL_NET_HANDLE_BYTES);
    std::memcpy(handle, id.bytes, sizeof id);
    *out = listener->release();
    return kSuccess;
  });
}

leeway_nccl_result connect(int device, const void* handle, void** out) {
  return guarded([&]() -> Code {
    *out = nullptr;
    if (!exists(device)) return refused("connect", "there is no such device");
    leeway_nccl_id bytes;
    std::memcpy(bytes.bytes, handle, sizeof bytes);
    const auto id = UniqueId::decode(bytes, UniqueId::Use::connection);
    if (!id.ok()) return failed(id.status(), "connect");
    auto connection = Process::get().connect(*id);
    if (!connection.ok()) return failed(connection.status(), "connect");
    *out = connection->release();
    return kSuccess;
  });
}

leeway_nccl_result accept(void* listener, void** out) {
  return guarded([&]() -> Code {
    *out = nullptr;
    if (listener == nullptr) return refused("accept", "no listener");
    auto& from = *static_cast<Listener*>(listener);
    if (from.accepted) return refused("accept", "this listener has accepted its connection");
    if (from.connecting == nullptr) {
      auto begun = Connecting::accept(from.id, Process::get().settings(), from.server);
      if (!begun.ok()) return failed(begun.status(), "accept");
      from.connecting = std::move(*begun);
    }
    auto connection = from.connecting->poll();
    if (connection.ok() && *connection == nullptr) return kSuccess;
    from.accepted = true;
    if (!connection.ok()) {
      drop_in_background(std::move(from.connecting));
      return failed(connection.status(), "accept");
    }
    from.connecting.reset();
    *out = connection->release();
    return kSuccess;
  });
}

// Succeeds even if the memory cannot be registered, because messages work without registration.
leeway_nccl_result register_memory(void* comm, void* data, std::size_t size, int kind, void** out) {
  return guarded([&]() -> Code {
    *out = nullptr;
    if (comm == nullptr) return refused("regMr", "no connection");
    if (kind != kHostMemory) return refused("regMr", "only the host's memory can be used");
    auto registration = std::make_unique<MemoryRegistration>();
    auto known = static_cast<Connection*>(comm)->register_memory(
        {static_cast<const std::byte*>(data), size});
    if (known.ok()) {
      *registration = std::move(*known);
    } else {
      inform("regMr: %s", known.status().c_str());
    }
    *out = registration.release();
    return kSuccess;
  });
}

leeway_nccl_result deregister(void* /*comm*/, void* registration) {
  return guarded([&]() -> Code {
    delete static_cast<MemoryRegistration*>(registration);
    return kSuccess;
  });
}

leeway_nccl_result send(void* comm, void* data, std::size_t size, void** request) {
  return guarded([&]() -> Code {
    *request = nullptr;
    if (comm == nullptr) return refused("isend", "no connection");
    Request* begun = nullptr;
    const Code code = static_cast<Connection*>(comm)->send(data, size, begun);
    *request = begun;
    return code;
  });
}

leeway_nccl_result receive(void* comm, int count, void** data, const std::size_t* sizes,
                           void** request) {
  return guarded([&]() -> Code {
    *request = nullptr;
    if (comm == nullptr) return refused("irecv", "no connection");
    if (count != 1) return refused("irecv", "one message at a time: maxRecvs is 1");
    Request* begun = nullptr;
    const Code code = static_cast<Connection*>(comm)->receive(data[0], sizes[0], begun);
    *request = begun;
    return code;
  });
}

// NCCL's size here is an int, so longer messages are reported as INT_MAX.
leeway_nccl_result test(void* request, int* done, int* size) {
  return guarded([&]() -> Code {
    *done = 0;
    if (request == nullptr) return refused("test", "no request");
    bool is_done = false;
    std::size_t bytes = 0;
    const Code code = Connection::test(*static_cast<Request*>(request), is_done, bytes);
    if (!is_done) return code;
    *done = 1;
    if (size != nullptr) *size = bytes < INT_MAX ? static_cast<int>(bytes) : INT_MAX;
    return code;
  });
}

leeway_nccl_result close_connection(void* comm) {
  return guarded([&]() -> Code {
    delete static_cast<Connection*>(comm);
    return kSuccess;
  });
}

leeway_nccl_result close_listen(void* listener) {
  return guarded([&]() -> Code {
    const std::unique_ptr<Listener> closed(static_cast<Listener*>(listener));
    if (closed != nullptr && closed->connecting != nullptr)
      drop_in_background(std::move(closed->connecting));
    return kSuccess;
  });
}

leeway_nccl_result finalize() {
  return guarded([]() -> Code {
    Process::get().finalize();
    return kSuccess;
  });
}

}  // namespace
}  // namespace leeway::nccl_net

extern "C" __attribute__((visibility("default")))
const leeway_nccl_net_functions leeway_nccl_net_functions_0 = {
    .init = leeway::nccl_net::init,
    .devices = leeway::nccl_net::devices,
    .properties = leeway::nccl_net::properties,
    .listen = leeway::nccl_net::listen,
    .connect = leeway::nccl_net::connect,
    .accept = leeway::nccl_net::accept,
    .register_memory = leeway::nccl_net::register_memory,
    .deregister = leeway::nccl_net::deregister,
    .send = leeway::nccl_net::send,
    .receive = leeway::nccl_net::receive,
    .test = leeway::nccl_net::test,
    .close_connection = leeway::nccl_net::close_connection,
    .close_listen = leeway::nccl_net::close_listen,
    .finalize = leeway::nccl_net::finalize};
