#include "observe/metrics_server.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <istream>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptors.h"
#include "base/exceptions.h"
#include "base/fork.h"
#include "base/per_process.h"
#include "base/thread.h"
#include "observe/exposition.h"

namespace leeway::observe {
namespace {

using asio::ip::tcp;

// Limits of connections. One that has not been answered after kPatience is closed. After a failed
// accept the server accepts no connection for kPause.
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr std::size_t kRequestBytesMax = 8192;
constexpr std::size_t kVisitorsMax = 16;
constexpr std::size_t kVisitorsOfSource = 4;

// Returns the source to whose share a connection belongs: its address, or for IPv6 the /64 network,
// because the owner of one address has that whole network.
asio::ip::address source_of(const tcp::socket& socket) {
  std::error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (!address.is_v6() || address.to_v6().is_v4_mapped()) return address;
  asio::ip::address_v6::bytes_type bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes);
}

// All servers of this process, by the address that was asked for.
struct Servers {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<MetricsServer>> by_address;
};
Servers& servers() {
  static auto* const of_process = new PerProcess<Servers>;  // never destroyed
  return of_process->get();
}

class Boards {
 public:
  void show(std::weak_ptr<const Board> board) {
    const std::lock_guard lock(mutex_);
    std::erase_if(boards_, [](const auto& known) { return known.expired(); });
    boards_.push_back(std::move(board));
  }
  std::string text() const {
    std::vector<Board::Sheet> sheets;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& known : boards_) {
        if (const auto board = known.lock()) sheets.push_back(board->read());
      }
    }
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, exposition(sheets));
    return out.str();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<const Board>> boards_;
};

std::string answer(const char* status, const std::string& body) {
  return std::string("HTTP/1.1 ") + status +
         "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

// One connection: reads one request, sends one answer, and closes.
class Visitor : public std::enable_shared_from_this<Visitor> {
 public:
  Visitor(tcp::socket socket, const Boards& boards)
      : socket_(std::move(socket)),
        source_(source_of(socket_)),
        timer_(socket_.get_executor()),
        boards_(boards) {}

  const asio::ip::address& source() const { return source_; }
  // Returns true if no request has arrived yet.
  bool silent() const { return reply_.empty(); }

  void serve() {
    timer_.expires_after(kPatience);
    timer_.async_wait([self = weak_from_this()](std::error_code error) {
      const auto alive = self.lock();
      if (!error && alive != nullptr) alive->hang_up();
    });
    asio::async_read_until(socket_, request_, "\r\n\r\n",
                           [self = shared_from_this()](std::error_code error, std::size_t) {
                             if (!error) self->reply();
                           });
  }
  void hang_up() {
    std::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void reply() {
    std::istream line(&request_);
    std::string method;
    std::string path;
    line >> method >> path;
    const bool known = path == "/metrics" || path == "/";
    if (method != "GET") {
      reply_ = answer("405 Method Not Allowed", "GET only\n");
    } else {
      reply_ = known ? answer("200 OK", boards_.text()) : answer("404 Not Found", "see /metrics\n");
    }
    asio::async_write(socket_, asio::buffer(reply_),
                      [self = shared_from_this()](std::error_code, std::size_t) {
                        std::error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_both, ignored);
                        self->timer_.cancel();
                      });
  }

  tcp::socket socket_;
  const asio::ip::address source_;
  asio::steady_timer timer_;
  const Boards& boards_;
  asio::streambuf request_{kRequestBytesMax};
  std::string reply_;
};

// An HTTP server of our own, because prometheus-cpp-pull's library has two faults. Its threads have
// stacks of 100 KiB, so they do not start in a program whose libraries have as much thread-local
// memory (libtorch). It makes the whole process ignore SIGPIPE.
class HttpServer final : public MetricsServer {
 public:
  HttpServer() : acceptor_(io_), paused_(io_) {}
  Status listen(const rendezvous::HostPort& where) {
    std::error_code error;
    const tcp::endpoint wanted(asio::ip::make_address(where.host, error), where.port);
    if (!error) acceptor_.open(wanted.protocol(), error);
    if (!error) kept_ = KeptFromChildren(acceptor_.native_handle());
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(wanted, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Status::error(code_without(error.value(), StatusCode::kUnavailable),
                           "cannot listen at %s: %s%s", rendezvous::to_text(where).c_str(),
                           error.message().c_str(), descriptor_hint(error.value()));
    }
    address_ = rendezvous::to_text(acceptor_.local_endpoint(error));
    accept();
    auto thread = Thread::start("serve metrics", [this](const std::stop_token& stop) {
      const std::stop_callback on_stop(stop, [this] { io_.stop(); });
      io_.run();
    });
    if (!thread.ok()) return thread.status();
    thread_ = std::move(*thread);
    return Status();
  }

  std::string address() const override { return address_; }
  void show(std::weak_ptr<const Board> board) override { boards_.show(std::move(board)); }

 private:
  void accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      std::erase_if(visitors_, [](const auto& visitor) { return visitor.expired(); });
      if (error) return pause();  // for example, no descriptor is free
      const auto visitor = std::make_shared<Visitor>(std::move(socket), boards_);
      if (make_room(visitor->source())) {
        visitors_.push_back(visitor);
        visitor->serve();
      }
      accept();
    });
  }

  // Makes room for a connection from `source`, so that silent connections lock no reader out. If
  // there is no room, closes the connection that has been silent longest. If `source` has used up
  // its share, closes the one of `source` that has been silent longest. Returns false if all
  // connections that might be closed are being answered.
  bool make_room(const asio::ip::address& source) {
    const auto is_of_source = [&](const auto& known) {
      const auto visitor = known.lock();
      return visitor != nullptr && visitor->source() == source;
    };
    const auto of_source = std::count_if(visitors_.begin(), visitors_.end(), is_of_source);
    const bool share_is_used = static_cast<std::size_t>(of_source) >= kVisitorsOfSource;
    if (!share_is_used && visitors_.size() < kVisitorsMax) return true;
    const auto longest = std::find_if(visitors_.begin(), visitors_.end(), [&](const auto& known) {
      const auto visitor = known.lock();
      return visitor != nullptr && visitor->silent() && (!share_is_used || is_of_source(known));
    });
    if (longest == visitors_.end()) return false;
    if (const auto visitor = longest->lock()) visitor->hang_up();
    visitors_.erase(longest);
    return true;
  }

  void pause() {
    paused_.expires_after(kPause);
    paused_.async_wait([this](std::error_code) { accept(); });
  }

  Boards boards_;  // destroyed after its readers
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  KeptFromChildren kept_;
  asio::steady_timer paused_;
  std::vector<std::weak_ptr<Visitor>> visitors_;
  std::string address_;
  Thread thread_;  // destroyed first
};

}  // namespace

Result<std::shared_ptr<MetricsServer>> MetricsServer::at(
    const rendezvous::MetricsAddress& address) {
  const std::string name = rendezvous::to_text(address);
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  if (auto known = all.by_address[name].lock()) return known;
  auto made = without_exceptions("metrics", [&]() -> Result<std::shared_ptr<MetricsServer>> {
    const auto server = std::make_shared<HttpServer>();
    if (const Status status = server->listen(address.where); !status.ok()) return status;
    return std::shared_ptr<MetricsServer>(server);
  });
  if (made.ok()) all.by_address[name] = *made;
  return made;
}

}  // namespace leeway::observe
