#include "rendezvous/server.h"

#include <algorithm>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <random>
#include <utility>

#include "rendezvous/address.h"
#include "rendezvous/log.h"
#include "rendezvous/printable.h"

namespace leeway::rendezvous {
namespace {

using asio::ip::tcp;

// Answers to a few ranks are a few kilobytes into empty socket buffers; what does not leave in this
// time never will. The tables of many ranks are megabytes for each of them: they have the time that
// 100 MB/s take.
constexpr Duration kFlushTime = std::chrono::milliseconds(500);
constexpr Duration kFlushTimePerByte = std::chrono::nanoseconds(10);

// After a failed accept (out of descriptors, say): when to try again.
constexpr Duration kAcceptRetry = std::chrono::milliseconds(50);

std::uint32_t random_epoch() {
  std::random_device device;
  std::uint32_t epoch = 0;
  while (epoch == 0) epoch = device();
  return epoch;
}

// Every local address, for both families where the system allows it.
tcp::endpoint any_address(std::uint16_t port, bool v6) {
  return {v6 ? tcp::v6() : tcp::v4(), port};
}

Status cannot_listen(const LocalConfiguration& root, std::uint16_t port, std::error_code error) {
  const char* const where = root.rendezvous.c_str();
  if (error == asio::error::address_in_use) {
    return Status::error(StatusCode::kUnavailable,
                         "rank 0 cannot listen on %.80s: port %u is in use; choose another port in "
                         "LEEWAY_RENDEZVOUS, or "
                         "find its owner with: ss -ltnp 'sport = :%u'",
                         where, unsigned{port}, unsigned{port});
  }
  if (error.value() == EADDRNOTAVAIL) {
    return Status::error(StatusCode::kUnavailable,
                         "rank 0 cannot listen on %.80s: not an address of this machine; "
                         "LEEWAY_RENDEZVOUS must name the "
                         "machine that runs rank 0",
                         where);
  }
  return Status::error(StatusCode::kUnavailable, "rank 0 cannot listen on %.80s: %s", where,
                       error.message().c_str());
}

}  // namespace

RendezvousServer::RendezvousServer(const LocalConfiguration& root, const RendezvousLimits& limits,
                                   Log* log)
    : root_(root), limits_(limits), log_(log), members_(static_cast<std::size_t>(root.size)) {}

Result<Group> RendezvousServer::run() {
  patience_end_ = Clock::now() + root_.join_timeout;
  if (Status status = listen(); !status.ok()) return status;
  accept_next();
  arm_patience();
  io_.run();
  if (failure_) return *failure_;
  return *group_;
}

// A literal address is listened on alone. A name stands for this machine: it may resolve
// differently here than on the other machines (Debian's /etc/hosts maps a machine's own name to
// 127.0.1.1), so all local addresses are listened on, except that "localhost" stays inside.
Status RendezvousServer::listen() {
  const auto where = parse_host_port(root_.rendezvous);
  if (!where.ok()) return where.status();
  const auto resolved = resolve(io_, *where);
  if (!resolved.ok()) return resolved.status();
  if (resolved->literal || where->host == "localhost")
    return open_acceptor(resolved->endpoints.front());
  if (open_acceptor(any_address(where->port, true)).ok()) return {};
  return open_acceptor(any_address(where->port, false));
}

Status RendezvousServer::open_acceptor(const tcp::endpoint& endpoint) {
  std::error_code error;
  acceptor_.close(error);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    acceptor_.set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  return error ? cannot_listen(root_, endpoint.port(), error) : Status();
}

void RendezvousServer::accept_next() {
  acceptor_.async_accept(
      [this](std::error_code error, tcp::socket socket) { on_accept(error, std::move(socket)); });
}

void RendezvousServer::on_accept(std::error_code error, tcp::socket socket) {
  if (!acceptor_.is_open()) return;
  if (error) {
    retry_accept_.expires_after(kAcceptRetry);
    retry_accept_.async_wait([this](std::error_code cancelled) {
      if (!cancelled && acceptor_.is_open()) accept_next();
    });
    return;
  }
  make_room_for_stranger();
  auto connection = std::make_shared<Connection>(io_, std::move(socket));
  connection->remote = connection->socket.remote_endpoint(error);
  strangers_.push_back(connection);
  read_hello(connection);
  accept_next();
}

void RendezvousServer::make_room_for_stranger() {
  if (strangers_.size() < limits_.half_open_max) return;
  drop_stranger(ConnectionPtr(strangers_.front()), "too many connections that say nothing");
}

void RendezvousServer::read_hello(const ConnectionPtr& connection) {
  connection->limit.expires_after(limits_.hello_timeout);
  connection->limit.async_wait([this, connection](std::error_code cancelled) {
    if (!cancelled) drop_stranger(connection, "no Hello in time");
  });
  async_read_frame(connection->socket, connection->frame, limits::kHelloBytesMax,
                   [this, connection](FrameOutcome outcome) { on_hello(connection, outcome); });
}

void RendezvousServer::on_hello(const ConnectionPtr& connection, FrameOutcome outcome) {
  if (!connection->socket.is_open()) return;  // dropped while the read was completing
  if (outcome == FrameOutcome::closed)
    return drop_stranger(connection, "closed before a complete Hello");
  if (outcome == FrameOutcome::oversized) return drop_stranger(connection, "message too long");
  auto hello = parse_hello(connection->frame.body);
  if (!hello) return drop_stranger(connection, "not a Hello");
  connection->limit.cancel();
  strangers_.remove(connection);
  if (failure_) return tell_failure(connection, hello->rank());
  admit(connection, std::move(*hello));
}

void RendezvousServer::drop_stranger(const ConnectionPtr& connection, const char* reason) {
  if (log_ != nullptr) {
    log_->print(LogLevel::warn, "rendezvous stranger", "rendezvous: connection from %s dropped: %s",
                to_text(connection->remote).c_str(), reason);
  }
  std::error_code ignored;
  connection->socket.close(ignored);
  connection->limit.cancel();
  strangers_.remove(connection);
}

void RendezvousServer::admit(const ConnectionPtr& connection, control::Hello hello) {
  const std::string from = to_text(connection->remote);
  Status verdict = check_hello(hello, root_, from);
  const auto rank = static_cast<Rank>(hello.rank());
  if (verdict.ok() && members_[rank]) {
    verdict = Status::error(
        StatusCode::kMismatch, "two processes claim rank %u: the one at %s and the one at %s",
        unsigned{rank}, to_text(members_[rank]->connection->remote).c_str(), from.c_str());
  }
  if (!verdict.ok()) {
    fail(verdict);
    return tell_failure(connection, hello.rank());
  }
  std::error_code error;
  const auto local = connection->socket.local_endpoint(error);
  if (error) return;  // it hung up already, and may come again
  const std::uint32_t patience_ms = hello.patience_ms();
  members_[rank] =
      Member{connection,
             {std::move(hello), unmapped(connection->remote.address()), unmapped(local.address())}};
  watch(rank, connection);
  if (missing_ranks().empty()) return complete();
  shorten_patience(patience_ms);
}

void RendezvousServer::watch(Rank rank, const ConnectionPtr& connection) {
  connection->socket.async_read_some(
      asio::buffer(&connection->after_hello, 1),
      [this, rank, connection](std::error_code, std::size_t) {
        if (group_ || failure_) return;
        if (log_ != nullptr) {
          log_->print(LogLevel::warn, "rendezvous hang-up",
                      "rendezvous: rank %u at %s hung up; waiting for it again", unsigned{rank},
                      to_text(connection->remote).c_str());
        }
        std::error_code ignored;
        connection->socket.close(ignored);
        members_[rank].reset();
      });
}

// The group cannot be complete without its least patient member, so that one's time is everyone's.
// An eighth of it (at most 200 ms) is kept for the answer's way.
void RendezvousServer::shorten_patience(std::uint32_t patience_ms) {
  const Duration patience = std::chrono::milliseconds(patience_ms);
  const auto end =
      Clock::now() + patience - std::min<Duration>(patience / 8, std::chrono::milliseconds(200));
  if (end >= patience_end_) return;
  patience_end_ = end;
  arm_patience();
}

void RendezvousServer::arm_patience() {
  patience_timer_.expires_at(patience_end_);
  patience_timer_.async_wait([this](std::error_code cancelled) {
    if (!cancelled) on_patience_over();
  });
}

void RendezvousServer::on_patience_over() {
  if (failure_ || group_) return stay(Duration(0));
  const std::vector<Rank> missing = missing_ranks();
  fail(Status::error(StatusCode::kUnavailable,
                     "%zu of %d ranks never came to the rendezvous at %.60s: missing rank%s %s; "
                     "are they running, with "
                     "this address, and is the port open to them?",
                     missing.size(), root_.size, root_.rendezvous.c_str(),
                     missing.size() == 1 ? "" : "s", list_ranks(missing).c_str()));
}

void RendezvousServer::complete() {
  std::vector<Joined> others;
  for (std::size_t rank = 1; rank < members_.size(); ++rank)
    others.push_back(members_[rank]->joined);
  auto group = make_group(root_, others, random_epoch());
  if (!group.ok()) return fail(group.status());
  group_ = *group;
  // Closed before anyone hears: a rank may go on to the next communicator's rendezvous on the same
  // port at once.
  std::error_code ignored;
  acceptor_.close(ignored);
  const auto frame = std::make_shared<const std::string>(frame_of(welcome_of(*group_)));
  for (std::size_t rank = 1; rank < members_.size(); ++rank)
    tell(members_[rank]->connection, frame);
  stay(Duration(0));
}

void RendezvousServer::fail(const Status& reason) {
  const bool out_of_time = Clock::now() >= patience_end_;
  failure_ = reason;
  rejection_ = std::make_shared<const std::string>(frame_of(rejection_of(reason)));
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    if (members_[rank]) tell_failure(members_[rank]->connection, static_cast<std::uint32_t>(rank));
  }
  stay(out_of_time ? Duration(0) : limits_.linger);
}

void RendezvousServer::tell_failure(const ConnectionPtr& connection, std::uint32_t rank) {
  if (rank != 0 && rank < members_.size()) told_ranks_.insert(rank);
  tell(connection, rejection_);
}

void RendezvousServer::tell(const ConnectionPtr& connection,
                            const std::shared_ptr<const std::string>& frame) {
  ++writes_pending_;
  bytes_pending_ += static_cast<std::int64_t>(frame->size());
  asio::async_write(connection->socket, asio::buffer(*frame),
                    [this, connection, frame](std::error_code, std::size_t) {
                      --writes_pending_;
                      bytes_pending_ -= static_cast<std::int64_t>(frame->size());
                      stop_when_told();
                    });
}

// Answers late comers for `time`, then leaves as soon as the answers are out.
void RendezvousServer::stay(Duration time) {
  leaving_ = time.count() == 0;
  patience_timer_.expires_after(leaving_ ? kFlushTime + bytes_pending_ * kFlushTimePerByte : time);
  patience_timer_.async_wait([this](std::error_code cancelled) {
    if (cancelled) return;
    if (leaving_) return io_.stop();
    stay(Duration(0));
  });
  asio::post(io_, [this] { stop_when_told(); });
}

void RendezvousServer::stop_when_told() {
  const bool all_told = told_ranks_.size() + 1 >= members_.size();
  if (writes_pending_ == 0 && (leaving_ || all_told)) io_.stop();
}

std::vector<Rank> RendezvousServer::missing_ranks() const {
  std::vector<Rank> missing;
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    if (!members_[rank]) missing.push_back(static_cast<Rank>(rank));
  }
  return missing;
}

}  // namespace leeway::rendezvous
