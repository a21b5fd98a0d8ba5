// Strangers at a rendezvous: connections over loopback that come again and again (Flood), or stay
// open (Held). They send bytes that the test chooses.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "unit/rendezvous/loopback_ranks.h"

namespace leeway::attack {

using asio::ip::tcp;
using rendezvous::loopback;

// Connects to a port again and again while this object lives, even while nobody listens.
class Flood {
 public:
  // `say` is called with each connection, which is then closed.
  Flood(std::uint16_t port, std::function<void(tcp::socket&)> say)
      : thread_([this, port, say = std::move(say)] { run(port, say); }) {}
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  std::uint64_t connections() const { return connections_; }
  void await(std::uint64_t connections) const {
    while (connections_ < connections) std::this_thread::yield();
  }

 private:
  void run(std::uint16_t port, const std::function<void(tcp::socket&)>& say) {
    asio::io_context io;
    while (!stop_) {
      tcp::socket socket(io);
      std::error_code error;
      socket.connect(loopback(port), error);
      if (error) {
        std::this_thread::yield();
        continue;
      }
      say(socket);
      // Closes by a reset, because a normal close would keep the local port in use for a minute.
      socket.set_option(asio::socket_base::linger(true, 0), error);
      ++connections_;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> connections_{0};
  std::thread thread_;
};

inline std::function<void(tcp::socket&)> saying(std::string bytes) {
  return [bytes = std::move(bytes)](tcp::socket& socket) {
    std::error_code ignored;
    asio::write(socket, asio::buffer(bytes), ignored);
  };
}

// Connections that send these bytes once and then stay open.
class Held {
 public:
  Held(std::uint16_t port, int count, const std::string& bytes) {
    for (int i = 0; i < count; ++i) {
      sockets_.emplace_back(io_);
      std::error_code error;
      do {
        sockets_.back() = tcp::socket(io_);
        sockets_.back().connect(loopback(port), error);
        if (error) std::this_thread::yield();
      } while (error);
      asio::write(sockets_.back(), asio::buffer(bytes), error);
    }
  }

 private:
  asio::io_context io_;
  std::vector<tcp::socket> sockets_;
};

}  // namespace leeway::attack
