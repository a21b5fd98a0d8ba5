// The sockets of a TcpServer and the thread that serves them, around a StoreServer.
#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fork.h"
#include "base/thread.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/store_server.h"
#include "rendezvous/tcp_server.h"
#include "rendezvous/tls_channel.h"

namespace leeway::rendezvous {

// Other threads use only what a mutex guards: the store with its core (StoreServer), and the
// refusals.
class TcpServer::Loop {
 public:
  Loop(const RendezvousLimits& limits, const TcpSecurity& security, std::unique_ptr<Log> log)
      : memory_(limits.bytes_max), security_(security), log_(std::move(log)) {
    std::uint64_t seed = 0;
    keys::fill_randomly(std::as_writable_bytes(std::span(&seed, 1)));
    memory_.change([&](StoreTable& table) { core_.emplace(limits, table, seed); });
  }
  ~Loop() { thread_.join(); }

  Status listen(const HostPort& where);
  Status start();
  void close();
  std::uint16_t port() const { return port_; }
  MemoryStore& memory() { return memory_; }
  Status put(std::string_view key, ByteSpan value, std::uint32_t readers);
  int accept_error() const { return accept_error_; }
  Refusals refusals() const {
    const std::lock_guard lock(refusals_mutex_);
    return refusals_;
  }

 private:
  using tcp = asio::ip::tcp;

  // Limit on the bytes read at a time, and on a first message. A rank's first message has some
  // hundred bytes.
  static constexpr std::size_t kReadBytes = std::size_t{8} * 1024;
  // Least interval of log lines about dropped connections. A rank with another secret connects
  // again and again until its time is up.
  static constexpr Duration kStrangersEvery = std::chrono::seconds(10);

  struct Connection {
    Connection(tcp::socket accepted, const tcp::endpoint& from)
        : socket(std::move(accepted)), kept(socket.native_handle()), remote(from) {}
    void close() {
      kept.release();
      std::error_code ignored;
      socket.close(ignored);
    }
    tcp::socket socket;
    KeptFromChildren kept;
    const tcp::endpoint remote;
    std::array<std::byte, kReadBytes> received;
    std::size_t held = 0;  // bytes of `received` of a first message that is not whole
    bool has_spoken = false;
    std::vector<StoreServer::Answer> queued;
    std::vector<StoreServer::Answer> leaving;
    std::optional<TlsChannel> tls;  // from the first message on; holds the answers instead
  };
  using ConnectionPtr = std::shared_ptr<Connection>;
  using Id = StoreServer::Id;

  void run();
  void wait_for_connections();
  void accept_batch();
  void look_at(int descriptor, const tcp::endpoint& remote);
  keys::FirstMessage judge(ByteSpan first) const;
  void admit(int descriptor, const tcp::endpoint& remote, ByteSpan said, keys::FirstMessage first);
  void refuse_at_once(int descriptor, const tcp::endpoint& remote);
  bool may_alert();
  void read_next(Id id, const ConnectionPtr& connection);
  void take(Id id, const ConnectionPtr& connection, std::size_t bytes);
  void refuse(Id id, const ConnectionPtr& connection);
  void write_next(Id id, const ConnectionPtr& connection);
  void write_tls(Id id, const ConnectionPtr& connection);
  void work_on_core(const std::function<void(StoreServer&, Instant)>& work);
  void drop(Id id, const char* reason);
  void say_dropped(const tcp::endpoint& remote, const char* reason);
  void note_refusal(const tcp::endpoint& remote, const std::string& why);
  void arm_timer(std::optional<Instant> wake);
  void on_closing();
  void stop_when_flushed();

  MemoryStore memory_;
  std::optional<StoreServer> core_;  // used with the memory locked
  const TcpSecurity security_;
  const std::unique_ptr<Log> log_;

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  KeptFromChildren acceptor_kept_;
  asio::steady_timer retry_accept_{io_};
  asio::steady_timer timer_{io_};
  std::uint16_t port_ = 0;
  std::map<Id, ConnectionPtr> connections_;
  std::array<std::byte, kReadBytes> first_bytes_;
  Id last_id_ = 0;
  Instant alerts_since_{0};
  int alerts_ = 0;
  LogLimiter strangers_{1, kStrangersEvery};
  mutable std::mutex refusals_mutex_;
  Refusals refusals_;
  std::size_t bytes_leaving_ = 0;
  bool closing_ = false;
  std::atomic<int> accept_error_ = 0;
  Thread thread_;
};

}  // namespace leeway::rendezvous
