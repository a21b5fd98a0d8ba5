// State that a process has once: the environment's settings, devices, the listener of all its
// handles, and connections that are being made.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"
#include "interop/nccl_net/connecting.h"
#include "interop/nccl_net/devices.h"
#include "leeway/rendezvous.h"

namespace leeway::nccl_net {

// The listener behind one handle. It accepts one connection.
struct Listener {
  nccl::UniqueId id;
  std::shared_ptr<TcpRendezvous> server;
  std::unique_ptr<Connecting> connecting;  // set since the first accept
  bool accepted = false;
};

// Thread-safe. A forked child has an instance of its own.
class Process {
 public:
  static Process& get();

  // The first call reads the environment. Each call needs a finalize().
  Status init();
  // The finalize() of the last init() gives up connections that are being made. It waits at most 2
  // s for closed connections to leave.
  void finalize();

  // Devices and settings are valid after init(), and never change.
  const std::vector<Device>& devices() const { return devices_; }
  const nccl::Settings& settings() const { return settings_; }

  // `device` is one of devices().
  Result<std::unique_ptr<Listener>> listen(int device);
  // As Connecting::poll(). The first call for a handle begins its connection; a call that returns a
  // connection or an error ends it.
  Result<std::unique_ptr<Connection>> connect(const nccl::UniqueId& id);

 private:
  struct Pending {
    std::unique_ptr<Connecting> connecting;
    std::chrono::steady_clock::time_point asked;  // NCCL's last call
  };
  Status read_environment();
  void drop_abandoned(std::chrono::steady_clock::time_point now);

  std::mutex mutex_;
  bool read_ = false;
  int users_ = 0;
  nccl::Settings settings_;
  std::vector<Device> devices_;
  // The server (a port and a thread) of all listeners, while there are any. The server's secret is
  // in the listeners' handles.
  std::weak_ptr<TcpRendezvous> server_;
  std::array<std::uint8_t, 32> secret_{};
  std::map<std::string, Pending> pending_;  // by the handle's nonce
};

}  // namespace leeway::nccl_net
