#include "rendezvous/tcp_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <thread>
#include <utility>

#include "base/descriptors.h"
#include "base/exceptions.h"
#include "base/fork.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/printable.h"
#include "rendezvous/store_frame.h"
#include "rendezvous/tcp_socket.h"

namespace leeway::rendezvous {
namespace {

using asio::ip::tcp;
using Clock = TcpClient::Clock;

// Least time that an attempt to connect gets. It suffices for the farthest server on earth and one
// lost packet of TCP.
constexpr Duration kConnectMin = std::chrono::milliseconds(1500);

// Pauses between attempts. The server usually starts within milliseconds of this process, but may
// take a minute.
constexpr Duration kRetryFirst = std::chrono::milliseconds(10);
constexpr Duration kRetryMax = std::chrono::milliseconds(500);
// Longest pause after the server accepted a connection and dropped it. Servers do that in a flood
// of strangers, or if they have another secret.
constexpr Duration kRetryDropped = std::chrono::milliseconds(50);

// Longest attempt to connect to an address that sends nothing, not even a refusal.
constexpr Duration kConnectMax = std::chrono::seconds(2);

// A new connection without an answer for this long may lead to a stranger, so it is closed. If the
// server was only slow, the next connection reaches it.
constexpr Duration kSilenceMax = std::chrono::seconds(1);

// Longest wait for an answer that a live server gives at once.
constexpr Duration kAnswerMax = std::chrono::seconds(30);

// If a connection breaks while a value of at least this size is put, the store may be full. The
// server always reads shorter values whole, and answers that there is no room.
constexpr std::size_t kLongValue = std::size_t{64} * 1024;

// First byte of the record with which a TLS server refuses anything that is not TLS.
constexpr std::byte kTlsAlert{21};

Status unavailable(const char* why) {
  return Status::error(StatusCode::kUnavailable, "%s", why);
}

}  // namespace

// One TCP connection. If a call fails otherwise than by its deadline, the connection is unusable.
class StoreConnection {
 public:
  // Returns false if no more answers are wanted.
  using OnAnswer = std::function<bool(const StoreAnswer&)>;

  // `attempt` is the number of the attempt to connect. Each attempt proves another of this
  // process's secrets, in turn.
  StoreConnection(const TcpSecurity& security, std::size_t attempt, const char* owner)
      : security_(security), attempt_(attempt), owner_(owner) {}

  // Tries the addresses of the host in turn. Each gets kConnectMin even if `end` is sooner, so that
  // an address after a dead one is reached. No attempt goes on beyond `last`.
  Status connect(const HostPort& where, Clock::time_point end, Clock::time_point last);

  // Sends `requests`, whose answers have numbers from 0 on, and hands on answers until `on_answer`
  // returns false. Returns kDeadlineExceeded if time was up before that.
  Status exchange(std::vector<StoreRequest> requests, Clock::time_point end,
                  const OnAnswer& on_answer);

  // Returns true if an exchange succeeded before. If the next exchange breaks, the server may only
  // have closed the idle connection, so a new connection may help.
  bool is_used() const { return is_used_; }
  bool is_reached() const { return is_reached_; }
  // Returns true if the next exchange may succeed although the last one took too long: the server
  // has answered before, or the connection is new.
  bool is_worth_keeping() const { return is_used_ || Clock::now() - reached_at_ < kSilenceMax; }
  std::optional<ConnectionEnds> ends() const;
  Duration round_trip() { return least_round_trip(socket_.native_handle()); }

 private:
  Status connect_one(const tcp::endpoint& endpoint, Clock::time_point end);
  Status prove_secret(Clock::time_point end);
  void close() {
    kept_.release();
    std::error_code ignored;
    socket_.close(ignored);
  }
  Status send(Clock::time_point end);
  Status write(ByteSpan bytes, Clock::time_point end);
  Status receive(Clock::time_point end, const OnAnswer& on_answer, bool& wanted);
  Status read(Clock::time_point end, ByteSpan& bytes);
  Status broken() const;
  void cancel_waiting(const std::vector<StoreRequest>& requests);

  // Runs Asio's loop until the operation sets `done`, and cancels the operation at `end`.
  template <typename T>
  void run_until(Clock::time_point end, const std::optional<T>& done);

  const TcpSecurity& security_;
  const std::size_t attempt_;
  const char* const owner_;
  asio::io_context io_{1};
  tcp::socket socket_{io_};
  KeptFromChildren kept_;
  std::optional<keys::TlsSession> tls_;
  FrameReader reader_;
  std::string unsent_;
  std::vector<std::byte> received_ = std::vector<std::byte>(std::size_t{8} * 1024);
  std::uint32_t first_number_ = 1;  // first number of the current exchange
  std::uint32_t next_number_ = 1;
  Clock::time_point reached_at_;
  bool is_used_ = false;
  bool is_reached_ = false;
};

Status StoreConnection::connect(const HostPort& where, Clock::time_point end,
                                Clock::time_point last) {
  const auto resolved = resolve(io_, where);
  if (!resolved.ok()) return resolved.status();
  Status status = unavailable("no address to connect to");
  for (const tcp::endpoint& endpoint : resolved->endpoints) {
    if (!security_.allows(endpoint.address())) return public_address_refused(endpoint.address());
    const auto enough = std::min(last, Clock::now() + kConnectMin);
    status = connect_one(endpoint, std::max(end, enough));
    if (status.ok()) break;
  }
  return status;
}

Status StoreConnection::connect_one(const tcp::endpoint& endpoint, Clock::time_point end) {
  std::error_code error;
  close();
  socket_.open(endpoint.protocol(), error);
  if (!error) kept_ = KeptFromChildren(socket_.native_handle());
  std::optional<std::error_code> done;
  socket_.async_connect(endpoint, [&done](std::error_code outcome) { done = outcome; });
  run_until(std::min(end, Clock::now() + kConnectMax), done);
  if (lacks_descriptors(done->value())) {
    return Status::error(StatusCode::kResourceExhausted, "no socket: %s%s", done->message().c_str(),
                         descriptor_hint(done->value()));
  }
  if (*done) {
    const std::string reason =
        *done == asio::error::operation_aborted ? "no answer" : done->message();
    return Status::error(StatusCode::kUnavailable,
                         "%s; is %s running, and its port open to this machine?", reason.c_str(),
                         owner_);
  }
  // TCP's simultaneous open can connect a socket to itself if nobody listens on a loopback port.
  if (socket_.local_endpoint(error) == socket_.remote_endpoint(error)) {
    close();
    return Status::error(StatusCode::kUnavailable, "nobody listens there; is %s running?", owner_);
  }
  is_reached_ = true;
  reached_at_ = Clock::now();
  speak_promptly(socket_.native_handle());
  unsent_.assign(reinterpret_cast<const char*>(kGreeting.data()), kGreeting.size());
  return security_.tls != nullptr ? prove_secret(end) : Status();
}

// Does the TLS handshake. A server that does not finish it in kConnectMax counts as a stranger.
Status StoreConnection::prove_secret(Clock::time_point end) {
  tls_.emplace(security_.tls, keys::TlsSession::Side::client, attempt_);
  end = std::min(end, Clock::now() + kConnectMax);
  std::vector<std::byte> plain;
  Status status = write(tls_->take_output(), end);
  while (status.ok() && !tls_->is_open()) {
    ByteSpan bytes;
    status = read(end, bytes);
    if (status.ok() && !tls_->receive(bytes, plain)) status = unavailable("refused");
  }
  if (status.ok()) return status;
  close();
  if (security_.tls->has_certificates()) {
    const std::string& why = tls_->objection();
    return Status::error(StatusCode::kUnavailable,
                         "what answers there did not prove that it is of this job: %s",
                         why.empty() ? "it took no TLS handshake" : why.c_str());
  }
  return Status::error(
      StatusCode::kUnavailable,
      "what answers there did not prove %s; has %s the same one "
      "(LEEWAY_SECRET_FILE)?",
      security_.tls->secrets() == 1 ? "this process's secret" : "any secret of this process",
      owner_);
}

std::optional<ConnectionEnds> StoreConnection::ends() const {
  std::error_code error;
  const auto own = socket_.local_endpoint(error);
  const auto theirs = error ? own : socket_.remote_endpoint(error);
  if (error) return std::nullopt;
  return ConnectionEnds{unmapped(own.address()), unmapped(theirs.address())};
}

Status StoreConnection::exchange(std::vector<StoreRequest> requests, Clock::time_point end,
                                 const OnAnswer& on_answer) {
  first_number_ = next_number_;
  for (StoreRequest& request : requests) {
    request.number = next_number_++;
    append_request(request, unsent_);
  }
  Status status = send(end);
  bool wanted = true;
  while (status.ok() && wanted) status = receive(end, on_answer, wanted);
  if (status.ok()) is_used_ = true;
  const bool may_wait = requests.size() > 1 || status.code() == StatusCode::kDeadlineExceeded;
  if (may_wait) cancel_waiting(requests);
  return status;
}

Status StoreConnection::send(Clock::time_point end) {
  const std::string text = std::exchange(unsent_, {});
  const ByteSpan plain = std::as_bytes(std::span(text));
  if (!tls_) return write(plain, end);
  tls_->say(plain);
  return write(tls_->take_output(), end);
}

Status StoreConnection::write(ByteSpan bytes, Clock::time_point end) {
  std::optional<std::error_code> done;
  asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()),
                    [&done](std::error_code outcome, std::size_t) { done = outcome; });
  run_until(end, done);
  return *done ? unavailable("the connection broke while it was written to") : Status();
}

Status StoreConnection::read(Clock::time_point end, ByteSpan& bytes) {
  std::optional<std::error_code> done;
  std::size_t received = 0;
  socket_.async_read_some(asio::buffer(received_), [&](std::error_code error, std::size_t count) {
    received = count;
    done = error;
  });
  run_until(end, done);
  if (*done == asio::error::operation_aborted)
    return Status::error(StatusCode::kDeadlineExceeded, "no answer in time");
  if (*done) return unavailable("the other side hung up before the group was complete");
  bytes = ByteSpan(received_).first(received);
  return {};
}

Status StoreConnection::receive(Clock::time_point end, const OnAnswer& on_answer, bool& wanted) {
  ByteSpan bytes;
  if (Status status = read(end, bytes); !status.ok()) return status;
  std::vector<std::byte> plain;
  if (tls_) {
    if (!tls_->receive(bytes, plain)) return broken();
    bytes = plain;
  }
  const bool is_alert = !tls_ && !bytes.empty() && bytes.front() == kTlsAlert;
  const bool ours = reader_.feed_answers(bytes, [&](const StoreAnswer& answer) {
    const std::uint32_t index = answer.number - first_number_;
    const bool is_old = index >= next_number_ - first_number_;
    if (is_old || !wanted) return;
    StoreAnswer numbered = answer;
    numbered.number = index;
    wanted = on_answer(numbered);
  });
  if (ours) return {};
  if (is_alert) {
    return Status::error(StatusCode::kInvalidArgument,
                         "what answers there wants a secret, and this process has none; set "
                         "LEEWAY_SECRET_FILE to the file that rank 0 has");
  }
  return Status::error(StatusCode::kMismatch,
                       "what answers there is not a Leeway rendezvous of this version");
}

// The error of a broken TLS connection. If a server that proved itself refuses this process's
// certificate, trying again is no use.
Status StoreConnection::broken() const {
  if (const auto refusal = tls_->refusal()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rank 0 does not take this process's certificate (LEEWAY_TLS_CERT): %s; "
                         "rank 0's log says more",
                         refusal->c_str());
  }
  return unavailable("the connection was tampered with");
}

// Cancels the gets among `requests` that still wait. The cancellations go out with the next
// request. Answers that are already on their way have the old requests' numbers, and are ignored.
void StoreConnection::cancel_waiting(const std::vector<StoreRequest>& requests) {
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    if (requests[i].operation != StoreOperation::get) continue;
    StoreRequest cancel;
    cancel.operation = StoreOperation::cancel;
    cancel.number = first_number_ + i;
    append_request(cancel, unsent_);
  }
}

template <typename T>
void StoreConnection::run_until(Clock::time_point end, const std::optional<T>& done) {
  io_.restart();
  io_.run_until(end);
  if (done) return;
  std::error_code ignored;
  socket_.cancel(ignored);
  io_.restart();
  io_.run();  // the operation reports that it was cancelled, or that it is done after all
}

TcpClient::TcpClient(Find find, TcpSecurity security, const char* owner, Clock::time_point end)
    : find_(std::move(find)),
      security_(std::move(security)),
      end_(end),
      owner_(owner),
      process_(::getpid()) {}

TcpClient::~TcpClient() = default;

Duration TcpClient::round_trip() const {
  const std::lock_guard lock(mutex_);
  Duration least(0);
  for (const ConnectionPtr& connection : free_) {
    const Duration one = connection->round_trip();
    if (one > Duration(0) && (least == Duration(0) || one < least)) least = one;
  }
  return least;
}

std::optional<ConnectionEnds> TcpClient::ends() const {
  const std::lock_guard lock(mutex_);
  return free_.empty() ? std::nullopt : free_.back()->ends();
}

Status TcpClient::put(std::string_view key, ByteSpan value) {
  return put_briefly(key, value, {});
}

Status TcpClient::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  if (Status status = check_put(key, value); !status.ok()) return status;
  StoreRequest request;
  request.operation = StoreOperation::put;
  request.with_connection = lifetime.with_this_process;
  request.readers = lifetime.readers;
  request.key = key;
  request.value = value;
  bool room = false;
  const Status status = ask({request}, end_of(kAnswerMax), true, [&](const StoreAnswer& answer) {
    room = answer.outcome == StoreOutcome::done;
    return false;
  });
  // A server without room for a long value closes the connection before it has read the value.
  if (status.code() == StatusCode::kUnavailable && value.size() >= kLongValue) {
    return Status::error(status.code(), "%s, or its store has no room for \"%.40s\" (%zu bytes)",
                         status.c_str(), printable(std::string(key)).c_str(), value.size());
  }
  if (!status.ok()) return status;
  return room ? Status() : store_is_full(key);
}

Result<std::vector<std::byte>> TcpClient::get(std::string_view key, Duration patience) {
  if (Status status = check_put(key, {}); !status.ok()) return status;
  const bool waits = patience > Duration(0);
  StoreRequest request;
  request.operation = waits ? StoreOperation::get : StoreOperation::look;
  request.key = key;
  std::optional<std::vector<std::byte>> value;
  const Status status =
      ask({request}, end_of(waits ? patience : kAnswerMax), waits, [&](const StoreAnswer& answer) {
        if (answer.outcome == StoreOutcome::found)
          value.emplace(answer.value.begin(), answer.value.end());
        return false;
      });
  if (!waits && status.code() == StatusCode::kDeadlineExceeded) return unavailable("no answer");
  if (!status.ok()) return status;
  if (!value) return key_is_absent(key, Duration(0));
  return std::move(*value);
}

Status TcpClient::erase(std::string_view key) {
  if (Status status = check_put(key, {}); !status.ok()) return status;
  StoreRequest request;
  request.operation = StoreOperation::erase;
  request.key = key;
  return ask({request}, end_of(kAnswerMax), true, [](const StoreAnswer&) { return false; });
}

Status TcpClient::get_each(std::span<const std::string> keys, Duration patience,
                           const Taker& take) {
  const bool waits = patience > Duration(0);
  std::vector<StoreRequest> requests(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (Status status = check_put(keys[i], {}); !status.ok()) return status;
    requests[i].operation = waits ? StoreOperation::get : StoreOperation::look;
    requests[i].key = keys[i];
  }
  if (keys.empty()) return {};
  std::size_t open = keys.size();
  const Status status =
      ask(requests, end_of(waits ? patience : kAnswerMax), waits, [&](const StoreAnswer& answer) {
        const bool more = answer.outcome != StoreOutcome::found ||
                          take(answer.number, {answer.value.begin(), answer.value.end()});
        return --open > 0 && more;
      });
  return waits && status.code() == StatusCode::kDeadlineExceeded ? Status() : status;
}

Result<std::vector<std::byte>> TcpClient::put_and_get(std::string_view put_key, ByteSpan value,
                                                      std::string_view get_key, Duration patience) {
  if (Status status = check_put(put_key, value); !status.ok()) return status;
  if (Status status = check_put(get_key, {}); !status.ok()) return status;
  std::vector<StoreRequest> requests(2);
  requests[0].operation = StoreOperation::put;
  requests[0].with_connection = true;
  requests[0].quiet = true;
  requests[0].key = put_key;
  requests[0].value = value;
  requests[1].operation = StoreOperation::get;
  requests[1].key = get_key;
  bool room = true;
  std::optional<std::vector<std::byte>> found;
  const Status status = ask(requests, end_of(patience), true, [&](const StoreAnswer& answer) {
    if (answer.outcome == StoreOutcome::found)
      found.emplace(answer.value.begin(), answer.value.end());
    room = room && answer.outcome != StoreOutcome::full;
    return room && !found;
  });
  if (!status.ok()) return status;
  if (!room) return store_is_full(put_key);
  return std::move(*found);
}

// Does one exchange, on a free connection or a new one. If `patient`, waits for an absent server.
Status TcpClient::ask(const std::vector<StoreRequest>& requests, Clock::time_point end,
                      bool patient, const std::function<bool(const StoreAnswer&)>& on_answer) {
  if (::getpid() != process_)
    return unavailable("a forked child cannot use its parent's connection; connect anew");
  bool answered = false;
  const auto note = [&](const StoreAnswer& answer) {
    answered = true;
    return on_answer(answer);
  };
  while (true) {
    auto connection = lease(end, patient);
    if (!connection.ok()) return connection.status();
    const bool was_used = (*connection)->is_used();
    const Status status = (*connection)->exchange(requests, end, note);
    if (status.ok() || status.code() == StatusCode::kDeadlineExceeded) {
      if ((*connection)->is_worth_keeping()) {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(*connection));
      }
      return status;
    }
    if (!was_used || answered || status.code() != StatusCode::kUnavailable) return status;
  }
}

Result<TcpClient::ConnectionPtr> TcpClient::lease(Clock::time_point end, bool patient) {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      ConnectionPtr connection = std::move(free_.back());
      free_.pop_back();
      return connection;
    }
  }
  Duration pause = kRetryFirst;
  Status before;
  while (true) {
    bool reached = false;
    auto connection = connect(end, reached);
    connection = with_refusal(std::move(connection), reached);
    const bool absent = connection.status().code() == StatusCode::kUnavailable;
    // kRetryFirst is kept for the last attempt, so that it fails for its own reason and not by the
    // deadline.
    const Duration left = end - Clock::now();
    // The earlier error says more than the error of an attempt that the deadline cut off.
    if (absent && left <= Duration(0) && !before.ok()) return before;
    if (connection.ok() || !absent || !patient || left <= kRetryFirst) return connection;
    before = connection.status();
    if (reached && security_.tls != nullptr) tell_once_all_were_refused(before);
    std::this_thread::sleep_for(std::min(pause, left - kRetryFirst));
    pause = std::min(2 * pause, reached ? kRetryDropped : kRetryMax);
  }
}

// Makes the next attempt prove the next secret, since some servers do not know a new secret yet.
// Reports the refusal once all secrets were refused.
void TcpClient::tell_once_all_were_refused(const Status& why) {
  if (++attempt_ % security_.tls->secrets() == 0 && tell_refusal_)
    std::exchange(tell_refusal_, nullptr)(why);
}

// If the server refused this process before and is gone now, returns the refusal, which says more
// than that nobody answers.
Result<TcpClient::ConnectionPtr> TcpClient::with_refusal(Result<ConnectionPtr> connection,
                                                         bool reached) {
  const std::lock_guard lock(mutex_);
  if (connection.ok()) refusal_ = Status();
  if (connection.ok() || connection.status().code() != StatusCode::kUnavailable) return connection;
  if (reached) refusal_ = connection.status();
  if (reached || refusal_.ok()) return connection;
  const std::string_view now = connection.status().text();
  return Status::error(StatusCode::kUnavailable, "%s (it has gone since: %.*s)", refusal_.c_str(),
                       static_cast<int>(std::min(now.find(';'), now.size())), now.data());
}

Result<TcpClient::ConnectionPtr> TcpClient::connect(Clock::time_point end, bool& reached) const {
  const auto where = find_();
  if (!where.ok()) return where.status();
  auto made = without_exceptions("rendezvous", [this] {
    return Result<ConnectionPtr>(std::make_unique<StoreConnection>(security_, attempt_, owner_));
  });
  if (!made.ok()) return made.status();
  ConnectionPtr connection = std::move(*made);
  // Attempts may last beyond `end`, up to `end_`. Otherwise a call with little patience would cut
  // each attempt off and begin anew.
  const Status status = connection->connect(*where, end, end_);
  reached = connection->is_reached();
  if (!status.ok()) return status;
  return connection;
}

Clock::time_point TcpClient::end_of(Duration patience) const {
  return std::min(end_, Clock::now() + std::min<Duration>(patience, std::chrono::hours(24)));
}

}  // namespace leeway::rendezvous
