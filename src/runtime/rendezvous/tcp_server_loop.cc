#include "rendezvous/tcp_server_loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptors.h"
#include "base/steady_now.h"
#include "rendezvous/tcp_socket.h"

namespace leeway::rendezvous {
namespace {

using asio::ip::tcp;

// Time for answers to leave when the server closes. A few ranks' answers are kilobytes, which leave
// at once or never. Many ranks' tables are megabytes each; they get as long as 100 MB/s need.
constexpr Duration kFlushTime = std::chrono::milliseconds(500);
constexpr Duration kFlushTimePerByte = std::chrono::nanoseconds(10);

// Pause after a failed accept (out of descriptors, say).
constexpr Duration kAcceptRetry = std::chrono::milliseconds(50);

// The TLS alert "handshake failure".
constexpr std::array<std::byte, 7> kHandshakeFailure = {std::byte{21}, std::byte{3}, std::byte{3},
                                                        std::byte{0},  std::byte{2}, std::byte{2},
                                                        std::byte{40}};
// Limit on alerts in kAlertWindow. An alert tells a rank that it has another secret. It adds a
// third to the cost of a refused connection, so in a flood most strangers get none.
constexpr int kAlertsPerSecond = 50;
constexpr Duration kAlertWindow = std::chrono::seconds(1);

constexpr const char* kUnknownSecret =
    "it does not know the secret of this job (LEEWAY_SECRET_FILE)";

constexpr const char* kHasSecret =
    "it has a secret (LEEWAY_SECRET_FILE) or certificates, and this process has none";

bool is_handshake(ByteSpan first) {
  return first.size() >= 2 && first[0] == std::byte{22} && first[1] == std::byte{3};
}

// Limit on connections to accept in a row before the thread does other work.
constexpr int kAcceptBatch = 64;

// Returns the wildcard address. With IPv6 it also accepts IPv4 where the system allows that.
tcp::endpoint any_address(std::uint16_t port, bool v6) {
  return {v6 ? tcp::v6() : tcp::v4(), port};
}

Status cannot_listen(const HostPort& where, std::error_code error) {
  const std::string text = to_text(where);
  if (error == asio::error::address_in_use) {
    return Status::error(StatusCode::kUnavailable,
                         "cannot listen on %.80s: port %u is in use; choose another port in "
                         "LEEWAY_RENDEZVOUS, or find its owner with: ss -ltnp 'sport = :%u'",
                         text.c_str(), unsigned{where.port}, unsigned{where.port});
  }
  if (error.value() == EADDRNOTAVAIL) {
    return Status::error(StatusCode::kUnavailable,
                         "cannot listen on %.80s: not an address of this machine; "
                         "LEEWAY_RENDEZVOUS must name the machine that runs rank 0",
                         text.c_str());
  }
  return Status::error(code_without(error.value(), StatusCode::kUnavailable),
                       "cannot listen on %.80s: %s%s", text.c_str(), error.message().c_str(),
                       descriptor_hint(error.value()));
}

// Returns the addresses to try. The server listens on the first that it can bind.
Result<std::vector<tcp::endpoint>> endpoints_to_listen_on(asio::io_context& io,
                                                          const HostPort& where) {
  const std::vector<tcp::endpoint> all = {any_address(where.port, true),
                                          any_address(where.port, false)};
  if (where.host.empty()) return all;
  const auto resolved = resolve(io, where);
  if (!resolved.ok()) return resolved.status();
  if (resolved->literal || where.host == "localhost")
    return std::vector<tcp::endpoint>{resolved->endpoints.front()};
  return all;
}

}  // namespace

Status TcpServer::Loop::listen(const HostPort& where) {
  const auto endpoints = endpoints_to_listen_on(io_, where);
  if (!endpoints.ok()) return endpoints.status();
  std::error_code error;
  for (const tcp::endpoint& endpoint : *endpoints) {
    if (!security_.allows(endpoint.address())) return public_address_refused(endpoint.address());
    acceptor_kept_.release();
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_kept_ = KeptFromChildren(acceptor_.native_handle());
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified())
      acceptor_.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) acceptor_.non_blocking(true, error);
    if (!error) break;
  }
  if (error) return cannot_listen(where, error);
  port_ = acceptor_.local_endpoint(error).port();
  return error ? cannot_listen(where, error) : Status();
}

Status TcpServer::Loop::start() {
  wait_for_connections();
  auto thread = Thread::start("serve a rendezvous", [this](const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [this] { close(); });
    run();
  });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(*thread);
  return Status();
}

// Asio throws when memory runs out. Only the operation that threw is lost.
void TcpServer::Loop::run() {
  while (!io_.stopped()) {
    try {
      io_.run();
    } catch (const std::exception& failure) {
      if (log_ != nullptr)
        log_->print(LogLevel::error, "rendezvous server", "rendezvous: %s", failure.what());
    }
  }
}

void TcpServer::Loop::close() {
  asio::post(io_, [this] { on_closing(); });
}

Status TcpServer::Loop::put(std::string_view key, ByteSpan value, std::uint32_t readers) {
  if (Status status = check_put(key, value); !status.ok()) return status;
  bool room = false;
  bool has_answers = false;
  memory_.change([&](StoreTable&) {
    room = core_->put_here(steady_now(), key, value, readers);
    has_answers = core_->has_answers();
  });
  if (has_answers) {
    asio::post(io_, [this] { work_on_core([](StoreServer&, Instant) {}); });
  }
  return room ? Status() : store_is_full(key);
}

void TcpServer::Loop::wait_for_connections() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](std::error_code) {
    if (acceptor_.is_open()) accept_batch();
  });
}

// Accepts up to kAcceptBatch connections in a row and refuses strangers at once, so that a rank
// waits only briefly behind a flood. Asio's accept would take five more system calls for a refused
// connection.
void TcpServer::Loop::accept_batch() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    tcp::endpoint remote;
    auto length = static_cast<socklen_t>(remote.capacity());
    const int descriptor =
        ::accept4(acceptor_.native_handle(), remote.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      accept_error_ = 0;
      remote.resize(length);
      look_at(descriptor, remote);
      continue;
    }
    if (errno == EAGAIN) break;
    if (errno == ECONNABORTED || errno == EINTR) continue;
    accept_error_ = errno;
    if (log_ != nullptr) {
      log_->print(LogLevel::error, "rendezvous accept",
                  "rendezvous: no connection can be accepted, other ranks wait: %s%s",
                  std::strerror(errno), descriptor_hint(errno));
    }
    retry_accept_.expires_after(kAcceptRetry);
    retry_accept_.async_wait([this](std::error_code cancelled) {
      if (!cancelled && acceptor_.is_open()) wait_for_connections();
    });
    return;
  }
  wait_for_connections();
}

// Judges a new connection by what it has sent already. A stranger is refused here, before it takes
// a place among the connections that have not greeted.
void TcpServer::Loop::look_at(int descriptor, const tcp::endpoint& remote) {
  if (!security_.allows(remote.address())) {
    say_dropped(remote, public_address_refused(remote.address()).c_str());
    ::close(descriptor);
    return;
  }
  const ssize_t got = ::recv(descriptor, first_bytes_.data(), first_bytes_.size(), 0);
  const bool is_silent = got < 0 && errno == EAGAIN;
  if (got <= 0 && !is_silent) {
    ::close(descriptor);
    return;
  }
  const ByteSpan said = ByteSpan(first_bytes_).first(is_silent ? 0 : static_cast<std::size_t>(got));
  const keys::FirstMessage first = judge(said);
  if (first == keys::FirstMessage::strangers) return refuse_at_once(descriptor, remote);
  admit(descriptor, remote, said, first);
}

keys::FirstMessage TcpServer::Loop::judge(ByteSpan first) const {
  if (security_.tls == nullptr) return keys::FirstMessage::may_be_members;
  return security_.tls->judge(first, kReadBytes);
}

void TcpServer::Loop::admit(int descriptor, const tcp::endpoint& remote, ByteSpan said,
                            keys::FirstMessage first) {
  std::error_code error;
  tcp::socket socket(io_);
  socket.assign(remote.protocol(), descriptor, error);
  if (error) {
    ::close(descriptor);
    return;
  }
  speak_promptly(socket.native_handle());
  const auto connection = std::make_shared<Connection>(std::move(socket), remote);
  std::copy(said.begin(), said.end(), connection->received.begin());
  if (security_.tls != nullptr && first == keys::FirstMessage::may_be_members)
    connection->tls.emplace(security_.tls);
  const Id id = ++last_id_;
  connections_.emplace(id, connection);
  const std::uint64_t network = network_of(remote.address());
  work_on_core([id, network](StoreServer& core, Instant now) { core.on_accept(now, id, network); });
  if (!said.empty() && connection->socket.is_open()) take(id, connection, said.size());
  if (connection->socket.is_open()) read_next(id, connection);
}

void TcpServer::Loop::read_next(Id id, const ConnectionPtr& connection) {
  connection->socket.async_read_some(
      asio::buffer(connection->received) + connection->held,
      [this, id, connection](std::error_code error, std::size_t bytes) {
        if (!connection->socket.is_open()) return;
        if (error) {
          connection->close();
          connections_.erase(id);
          work_on_core([id](StoreServer& core, Instant) { core.on_closed(id); });
          return;
        }
        take(id, connection, bytes);
        if (connection->socket.is_open()) read_next(id, connection);
      });
}

// Handles received bytes. A TLS session takes 100 kB, so a connection gets one only for a whole
// first message that may be a member's. The core (StoreServer) gets no bytes before TLS has proved
// that the sender knows the secret.
void TcpServer::Loop::take(Id id, const ConnectionPtr& connection, std::size_t bytes) {
  ByteSpan received = ByteSpan(connection->received).first(connection->held + bytes);
  std::vector<std::byte> plain;
  const bool is_first = !std::exchange(connection->has_spoken, true);
  if (security_.tls == nullptr && is_first && is_handshake(received)) return refuse(id, connection);
  if (security_.tls != nullptr) {
    if (!connection->tls) {
      const keys::FirstMessage first = judge(received);
      if (first == keys::FirstMessage::strangers) return refuse(id, connection);
      connection->held = received.size();
      if (first == keys::FirstMessage::unfinished) return;
      connection->tls.emplace(security_.tls);
    }
    connection->held = 0;
    if (!connection->tls->receive(received, plain)) return refuse(id, connection);
    write_tls(id, connection);
    if (plain.empty()) return;
    received = plain;
  }
  work_on_core([&, id](StoreServer& core, Instant now) { core.on_bytes(now, id, received); });
}

void TcpServer::Loop::refuse_at_once(int descriptor, const tcp::endpoint& remote) {
  note_refusal(remote, kUnknownSecret);
  say_dropped(remote, kUnknownSecret);
  if (may_alert())
    (void)::send(descriptor, kHandshakeFailure.data(), kHandshakeFailure.size(), MSG_NOSIGNAL);
  ::close(descriptor);
}

bool TcpServer::Loop::may_alert() {
  const Instant now = steady_now();
  if (now - alerts_since_ >= kAlertWindow) {
    alerts_since_ = now;
    alerts_ = 0;
  }
  return alerts_++ < kAlertsPerSecond;
}

// Sends an alert, if the socket takes it at once, and drops the connection. OpenSSL makes no alert
// for bytes that are not TLS, so those get kHandshakeFailure.
void TcpServer::Loop::refuse(Id id, const ConnectionPtr& connection) {
  ByteSpan alert;
  if (connection->tls) alert = connection->tls->begin_write();
  if (alert.empty()) alert = kHandshakeFailure;
  std::error_code ignored;
  connection->socket.non_blocking(true, ignored);
  connection->socket.write_some(asio::buffer(alert.data(), alert.size()), ignored);
  std::string why = security_.tls == nullptr ? kHasSecret : kUnknownSecret;
  if (security_.tls != nullptr && security_.tls->has_certificates()) {
    why = "it did not prove that it is of this job";
    if (connection->tls && !connection->tls->objection().empty())
      why += ": " + connection->tls->objection();
  }
  note_refusal(connection->remote, why);
  drop(id, why.c_str());
  work_on_core([id](StoreServer& core, Instant) { core.on_closed(id); });
}

void TcpServer::Loop::write_tls(Id id, const ConnectionPtr& connection) {
  const ByteSpan bytes = connection->tls->begin_write();
  if (bytes.empty()) return;
  asio::async_write(connection->socket, asio::buffer(bytes.data(), bytes.size()),
                    [this, id, connection](std::error_code error, std::size_t) {
                      const std::size_t before = connection->tls->bytes_left();
                      const TlsChannel::Written written = connection->tls->end_write();
                      bytes_leaving_ -= error ? before : written.bytes;
                      if (!error) {
                        if (written.answers > 0) {
                          work_on_core([id, written](StoreServer& core, Instant now) {
                            core.on_sent(now, id, written.answers);
                          });
                        }
                        write_tls(id, connection);
                      }
                      if (closing_) stop_when_flushed();
                    });
}

// Runs `work` on the core, then sends the answers and closes the connections that the core names.
void TcpServer::Loop::work_on_core(const std::function<void(StoreServer&, Instant)>& work) {
  std::vector<StoreServer::Answer> answers;
  std::vector<StoreServer::Closing> closings;
  std::optional<Instant> wake;
  memory_.change([&](StoreTable&) {
    work(*core_, steady_now());
    answers = core_->poll_answers();
    closings = core_->poll_closings();
    wake = core_->next_wake();
  });
  for (StoreServer::Answer& answer : answers) {
    const auto at = connections_.find(answer.to);
    if (at == connections_.end()) continue;
    if (!at->second->tls) {
      at->second->queued.push_back(std::move(answer));
      continue;
    }
    const std::size_t before = at->second->tls->bytes_left();
    at->second->tls->queue(std::move(answer));
    bytes_leaving_ += at->second->tls->bytes_left() - before;
  }
  for (const StoreServer::Answer& answer : answers) {
    const auto at = connections_.find(answer.to);
    if (at == connections_.end()) continue;
    at->second->tls ? write_tls(at->first, at->second) : write_next(at->first, at->second);
  }
  for (const StoreServer::Closing& closing : closings) drop(closing.id, closing.reason);
  arm_timer(wake);
}

void TcpServer::Loop::write_next(Id id, const ConnectionPtr& connection) {
  if (!connection->leaving.empty() || connection->queued.empty()) return;
  connection->leaving = std::exchange(connection->queued, {});
  std::vector<asio::const_buffer> buffers;
  std::size_t bytes = 0;
  for (const StoreServer::Answer& answer : connection->leaving) {
    buffers.emplace_back(answer.head.data(), answer.head.size());
    if (answer.value) buffers.emplace_back(answer.value->data(), answer.value->size());
    bytes += answer.head.size() + (answer.value ? answer.value->size() : 0);
  }
  bytes_leaving_ += bytes;
  asio::async_write(connection->socket, buffers,
                    [this, id, connection, bytes](std::error_code error, std::size_t) {
                      bytes_leaving_ -= bytes;
                      const std::size_t answers = connection->leaving.size();
                      connection->leaving.clear();
                      if (!error) {
                        work_on_core([id, answers](StoreServer& core, Instant now) {
                          core.on_sent(now, id, answers);
                        });
                        write_next(id, connection);
                      }
                      if (closing_) stop_when_flushed();
                    });
}

void TcpServer::Loop::drop(Id id, const char* reason) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  say_dropped(at->second->remote, reason);
  at->second->close();
  connections_.erase(at);
}

void TcpServer::Loop::say_dropped(const tcp::endpoint& remote, const char* reason) {
  if (log_ == nullptr) return;
  const LogLimiter::Verdict verdict = strangers_.admit("dropped", steady_now());
  if (!verdict.print) return;
  const std::string more =
      verdict.held_back == 0 ? "" : " (and " + std::to_string(verdict.held_back) + " before)";
  log_->print(LogLevel::warn, "rendezvous stranger", "rendezvous: connection from %s dropped: %s%s",
              to_text(remote).c_str(), reason, more.c_str());
}

void TcpServer::Loop::note_refusal(const tcp::endpoint& remote, const std::string& why) {
  const std::lock_guard lock(refusals_mutex_);
  ++refusals_.count;
  refusals_.from = to_text(remote);
  refusals_.why = why;
}

void TcpServer::Loop::arm_timer(std::optional<Instant> wake) {
  if (closing_) return;
  if (!wake) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(std::chrono::steady_clock::time_point(Duration(wake->ns)));
  timer_.async_wait([this](std::error_code cancelled) {
    if (!cancelled && !closing_)
      work_on_core([](StoreServer& core, Instant now) { core.on_wake(now); });
  });
}

void TcpServer::Loop::on_closing() {
  work_on_core([](StoreServer&, Instant) {});
  closing_ = true;
  std::error_code ignored;
  acceptor_kept_.release();
  acceptor_.close(ignored);
  retry_accept_.cancel();
  timer_.expires_after(kFlushTime + static_cast<std::int64_t>(bytes_leaving_) * kFlushTimePerByte);
  timer_.async_wait([this](std::error_code cancelled) {
    if (!cancelled) io_.stop();
  });
  stop_when_flushed();
}

void TcpServer::Loop::stop_when_flushed() {
  if (bytes_leaving_ == 0) io_.stop();
}

}  // namespace leeway::rendezvous
