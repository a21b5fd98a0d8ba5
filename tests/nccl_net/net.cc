#include "net.h"

#include <dlfcn.h>

#include <array>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include <unistd.h>

namespace nccl_net_test {
namespace {

constexpr int kWarn = 2;

std::mutex warnings_mutex;
std::vector<std::string> warnings;

[[gnu::format(printf, 5, 6)]] void log(int level, unsigned long /*flags*/, const char* /*file*/,
                                       int /*line*/, const char* format, ...) {
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  if (level > kWarn) return;
  const std::lock_guard lock(warnings_mutex);
  warnings.emplace_back(text.data());
}

template <typename Table>
const Table& find(void* library, int version) {
  const std::string name = "ncclNetPlugin_v" + std::to_string(version);
  const void* const found = ::dlsym(library, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), ::dlerror());
    std::exit(1);
  }
  return *static_cast<const Table*>(found);
}

// Sets the functions whose names and arguments are the same in all versions.
template <typename Table>
Net common(const Table& table, int version) {
  Net net;
  net.version = version;
  net.name = table.name;
  net.devices = table.devices;
  net.dereg = table.deregister;
  net.flush = [&table](void* comm, void** request) {
    int size = 0;
    void* data = nullptr;
    void* registration = nullptr;
    return table.flush(comm, 1, &data, &size, &registration, request);
  };
  net.test = table.test;
  net.close_send = table.close_send;
  net.close_receive = table.close_receive;
  net.close_listen = table.close_listen;
  return net;
}

template <typename Properties>
leeway_nccl_net_properties_v12 copied(const Properties& from) {
  leeway_nccl_net_properties_v12 out{};
  out.name = from.name;
  out.pci_path = from.pci_path;
  out.guid = from.guid;
  out.pointer_kinds = from.pointer_kinds;
  out.speed = from.speed;
  out.port = from.port;
  out.latency = from.latency;
  out.comms_max = from.comms_max;
  out.receives_max = from.receives_max;
  return out;
}

leeway_nccl_net_properties_v12 copied(const leeway_nccl_net_properties_v11& from) {
  auto out = copied(from.base);
  out.parts = {from.base.parts.count, {from.base.parts.devices[0]}};
  out.message_bytes_max = from.base.message_bytes_max;
  out.multi_request_max = from.multi_request_max;
  return out;
}

template <typename Properties, typename Table>
void use_properties(Net& net, const Table& table) {
  net.properties = [&table](int device, leeway_nccl_net_properties_v12* out) {
    if constexpr (std::is_same_v<Properties, leeway_nccl_net_properties_v12>) {
      return table.properties(device, out);
    } else {
      Properties properties;
      const int result = table.properties(device, &properties);
      if (result == kSuccess) *out = copied(properties);
      return result;
    }
  };
}

// Sets the functions of versions up to 10, which have no context.
template <typename Table>
void use_without_context(Net& net, const Table& table) {
  net.listen = [&table](int device, Handle& handle, void** out) {
    return table.listen(device, handle.data(), out);
  };
  if constexpr (!std::is_same_v<Table, leeway_nccl_net_v10>)
    net.init = [&table] { return table.init(log); };
}

template <typename Table>
void use_offload(Net& net, const Table& table) {
  net.accept = [&table](void* listener, void** out) {
    struct leeway_nccl_net_offload* offload = nullptr;
    return table.accept(listener, out, &offload);
  };
}

template <typename Table>
void use_int_sizes(Net& net, const Table& table) {
  net.send = [&table](void* comm, const void* data, std::size_t size, void** request) {
    return table.send(comm, const_cast<void*>(data), static_cast<int>(size), 7, nullptr, request);
  };
  net.receive = [&table](void* comm, void* data, std::size_t size, void** request) {
    int size_int = static_cast<int>(size);
    int tag = 9;  // another tag than the sender's: only the order matches messages
    void* registration = nullptr;
    return table.receive(comm, 1, &data, &size_int, &tag, &registration, request);
  };
  net.receive_several = [&table](void* comm, int count, void** request) {
    std::vector<void*> data(count);
    std::vector<int> sizes(count);
    std::vector<int> tags(count);
    return table.receive(comm, count, data.data(), sizes.data(), tags.data(), data.data(), request);
  };
}

template <typename Table>
void use_long_sizes(Net& net, const Table& table) {
  net.send = [&table](void* comm, const void* data, std::size_t size, void** request) {
    if constexpr (std::is_same_v<Table, leeway_nccl_net_v9>) {
      return table.send(comm, const_cast<void*>(data), size, 7, nullptr, request);
    } else {
      return table.send(comm, const_cast<void*>(data), size, 7, nullptr, nullptr, request);
    }
  };
  const auto receive = [&table](void* comm, std::vector<void*>& data,
                                std::vector<std::size_t>& sizes, void** request) {
    const int count = static_cast<int>(data.size());
    std::vector<int> tags(data.size(), 9);
    std::vector<void*> none(data.size());
    if constexpr (std::is_same_v<Table, leeway_nccl_net_v9>) {
      return table.receive(comm, count, data.data(), sizes.data(), tags.data(), none.data(),
                           request);
    } else {
      return table.receive(comm, count, data.data(), sizes.data(), tags.data(), none.data(),
                           none.data(), request);
    }
  };
  net.receive = [receive](void* comm, void* memory, std::size_t size, void** request) {
    std::vector<void*> data{memory};
    std::vector<std::size_t> sizes{size};
    return receive(comm, data, sizes, request);
  };
  net.receive_several = [receive](void* comm, int count, void** request) {
    std::vector<void*> data(count);
    std::vector<std::size_t> sizes(count);
    return receive(comm, data, sizes, request);
  };
}

template <typename Table>
void use_connect_v7(Net& net, const Table& table) {
  net.connect = [&table](int device, Handle& handle, void** out) {
    struct leeway_nccl_net_offload* offload = nullptr;
    return table.connect(device, handle.data(), out, &offload);
  };
}

template <typename Table>
void use_context(Net& net, const Table& table) {
  // The context that init() returns is passed to the other calls, as NCCL passes it.
  const auto context = std::make_shared<void*>();
  net.init = [&table, context] { return table.init(context.get(), 1, nullptr, log, nullptr); };
  net.listen = [&table, context](int device, Handle& handle, void** out) {
    return table.listen(*context, device, handle.data(), out);
  };
  net.connect = [&table, context](int device, Handle& handle, void** out) {
    struct leeway_nccl_net_offload* offload = nullptr;
    return table.connect(*context, device, handle.data(), out, &offload);
  };
  net.finalize = [&table, context] { return table.finalize(*context); };
}

Net load_v6(void* library) {
  const auto& table = find<leeway_nccl_net_v6>(library, 6);
  Net net = common(table, 6);
  use_without_context(net, table);
  use_properties<leeway_nccl_net_properties_v6>(net, table);
  use_int_sizes(net, table);
  net.connect = [&table](int device, Handle& handle, void** out) {
    return table.connect(device, handle.data(), out);
  };
  net.accept = table.accept;
  net.reg = [&table](void* comm, void* data, std::size_t size, int kind, void** out) {
    return table.register_memory(comm, data, static_cast<int>(size), kind, out);
  };
  return net;
}

Net load_v7(void* library) {
  const auto& table = find<leeway_nccl_net_v7>(library, 7);
  Net net = common(table, 7);
  use_without_context(net, table);
  use_properties<leeway_nccl_net_properties_v7>(net, table);
  use_int_sizes(net, table);
  use_connect_v7(net, table);
  use_offload(net, table);
  net.reg = [&table](void* comm, void* data, std::size_t size, int kind, void** out) {
    return table.register_memory(comm, data, static_cast<int>(size), kind, out);
  };
  return net;
}

Net load_v8(void* library) {
  const auto& table = find<leeway_nccl_net_v8>(library, 8);
  Net net = common(table, 8);
  use_without_context(net, table);
  use_properties<leeway_nccl_net_properties_v8>(net, table);
  use_int_sizes(net, table);
  use_connect_v7(net, table);
  use_offload(net, table);
  net.reg = table.register_memory;
  return net;
}

Net load_v9(void* library) {
  const auto& table = find<leeway_nccl_net_v9>(library, 9);
  Net net = common(table, 9);
  use_without_context(net, table);
  use_properties<leeway_nccl_net_properties_v9>(net, table);
  use_long_sizes(net, table);
  use_connect_v7(net, table);
  use_offload(net, table);
  net.reg = table.register_memory;
  return net;
}

Net load_v10(void* library) {
  const auto& table = find<leeway_nccl_net_v10>(library, 10);
  Net net = common(table, 10);
  use_without_context(net, table);
  use_properties<leeway_nccl_net_properties_v9>(net, table);
  use_long_sizes(net, table);
  use_offload(net, table);
  net.init = [&table] { return table.init(log, nullptr); };
  net.connect = [&table](int device, Handle& handle, void** out) {
    struct leeway_nccl_net_offload* offload = nullptr;
    return table.connect(device, nullptr, handle.data(), out, &offload);
  };
  net.reg = table.register_memory;
  return net;
}

template <typename Table, typename Properties>
Net load_with_context(void* library, int version) {
  const auto& table = find<Table>(library, version);
  Net net = common(table, version);
  use_context(net, table);
  use_properties<Properties>(net, table);
  use_long_sizes(net, table);
  use_offload(net, table);
  net.reg = table.register_memory;
  return net;
}

}  // namespace

void* open_plugin() {
  void* const library = ::dlopen(LEEWAY_NCCL_NET_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  std::fprintf(stderr, "%s\n", ::dlerror());
  std::exit(1);
}

Net load(void* library, int version) {
  switch (version) {
    case 6:
      return load_v6(library);
    case 7:
      return load_v7(library);
    case 8:
      return load_v8(library);
    case 9:
      return load_v9(library);
    case 10:
      return load_v10(library);
    case 11:
      return load_with_context<leeway_nccl_net_v11, leeway_nccl_net_properties_v11>(library, 11);
    default:
      return load_with_context<leeway_nccl_net_v12, leeway_nccl_net_properties_v12>(library, 12);
  }
}

Net load(int version) {
  static void* const library = open_plugin();
  Net net = load(library, version);
  if (net.init() == kSuccess) return net;
  for (const std::string& line : take_warnings()) std::fprintf(stderr, "%s\n", line.c_str());
  std::exit(1);
}

std::vector<std::string> take_warnings() {
  const std::lock_guard lock(warnings_mutex);
  return std::exchange(warnings, {});
}

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace nccl_net_test
