#include "rendezvous/tcp_server.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/exceptions.h"
#include "base/per_process.h"
#include "rendezvous/tcp_server_loop.h"

namespace leeway::rendezvous {

Result<std::unique_ptr<TcpServer>> TcpServer::open(const HostPort& where,
                                                   const RendezvousLimits& limits,
                                                   const TcpSecurity& security,
                                                   std::unique_ptr<Log> log) {
  if (Status status = keys::check_random(); !status.ok()) return status;
  auto made = without_exceptions("rendezvous server", [&] {
    return Result<std::unique_ptr<Loop>>(std::make_unique<Loop>(limits, security, std::move(log)));
  });
  if (!made.ok()) return made.status();
  std::unique_ptr<Loop> loop = std::move(*made);
  if (Status status = loop->listen(where); !status.ok()) return status;
  HostPort reached = {where.host, loop->port()};
  if (is_any_host(where.host)) reached.host = outward_address().to_string();
  if (Status status = loop->start(); !status.ok()) return status;
  return std::unique_ptr<TcpServer>(new TcpServer(std::move(loop), to_text(reached)));
}

TcpServer::TcpServer(std::unique_ptr<Loop> loop, std::string address)
    : loop_(std::move(loop)), address_(std::move(address)) {}

// In a forked child the server's thread does not exist, so the child leaks the loop and does not
// touch it.
TcpServer::~TcpServer() {
  if (!check_process().ok()) {
    (void)loop_.release();
    return;
  }
  loop_->close();
}

TcpServer::Refusals TcpServer::refusals() const {
  return loop_->refusals();
}

int TcpServer::accept_error() const {
  return loop_->accept_error();
}

Status TcpServer::put(std::string_view key, ByteSpan value) {
  return put_briefly(key, value, {});
}

Status TcpServer::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  if (Status status = check_process(); !status.ok()) return status;
  return loop_->put(key, value, lifetime.readers);
}

Status TcpServer::erase(std::string_view key) {
  if (Status status = check_process(); !status.ok()) return status;
  loop_->memory().change([key](StoreTable& table) { table.erase(key); });
  return {};
}

Result<std::vector<std::byte>> TcpServer::get(std::string_view key, Duration patience) {
  if (Status status = check_process(); !status.ok()) return status;
  return loop_->memory().get(key, patience);
}

Status TcpServer::get_each(std::span<const std::string> keys, Duration patience,
                           const Taker& take) {
  if (Status status = check_process(); !status.ok()) return status;
  return loop_->memory().get_each(keys, patience, take);
}

void TcpServer::wait_read(std::string_view key, std::uint32_t reads, Duration patience) {
  if (check_process().ok()) loop_->memory().wait_read(key, reads, patience);
}

Status TcpServer::check_process() const {
  if (::getpid() == owner_) return {};
  return Status::error(StatusCode::kUnavailable,
                       "rendezvous: a forked child cannot use its parent's server; connect to it");
}

namespace {

// An address at which this process has a server, or is about to open or close one.
struct SharedPlace {
  std::mutex mutex;
  std::condition_variable closed;
  bool open = false;  // until the server has released its port
  std::weak_ptr<TcpServer> server;
};

class SharedPlaces {
 public:
  std::shared_ptr<SharedPlace> at(const std::string& address) {
    const std::lock_guard lock(mutex_);
    std::erase_if(places_, [](const auto& one) { return one.second.expired(); });
    std::shared_ptr<SharedPlace> place = places_[address].lock();
    if (place == nullptr) places_[address] = place = std::make_shared<SharedPlace>();
    return place;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<SharedPlace>> places_;
};

void close_shared(SharedPlace& place, TcpServer* server) {
  delete server;
  {
    const std::lock_guard lock(place.mutex);
    place.open = false;
    place.server.reset();  // holds this deleter, and so the place
  }
  place.closed.notify_all();
}

// Makes `opened` the server of `place`, which later calls share, until its last user is gone. Call
// it with the place locked.
std::shared_ptr<TcpServer> share(const std::shared_ptr<SharedPlace>& place,
                                 std::unique_ptr<TcpServer> opened) {
  std::shared_ptr<TcpServer> server(opened.release(),
                                    [place](TcpServer* closed) { close_shared(*place, closed); });
  place->server = server;
  place->open = true;
  return server;
}

}  // namespace

Result<std::shared_ptr<TcpServer>> shared_server(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log) {
  // Never destroyed, because threads may outlive exit(). A forked child begins without servers.
  static auto& places = *new PerProcess<SharedPlaces>;
  const auto place_at = [&](const std::string& address) {
    return places.get().at(address + (security.insecure ? " insecure" : "") +
                           (security.tls != nullptr ? security.tls->name() : ""));
  };
  if (where.port == 0) {
    auto opened = TcpServer::open(where, limits, security, std::move(log));
    if (!opened.ok()) return opened.status();
    const auto place = place_at((*opened)->address());
    const std::lock_guard lock(place->mutex);
    return share(place, std::move(*opened));
  }
  const std::shared_ptr<SharedPlace> place = place_at(to_text(where));
  std::unique_lock lock(place->mutex);
  while (true) {
    if (auto server = place->server.lock()) return server;
    if (!place->open) break;
    place->closed.wait(lock);
  }
  auto opened = TcpServer::open(where, limits, security, std::move(log));
  if (!opened.ok()) return opened.status();
  return share(place, std::move(*opened));
}

}  // namespace leeway::rendezvous
