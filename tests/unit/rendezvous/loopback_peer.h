// TCP for the rendezvous tests: free ports, messages to spoil, and a peer that sends any bytes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "leeway/options.h"
#include "rendezvous/control_message.h"
#include "rendezvous/store_frame.h"
#include "wire/packet.h"

namespace leeway::rendezvous {

using asio::ip::tcp;

inline tcp::endpoint loopback(std::uint16_t port) {
  return {asio::ip::address_v4::loopback(), port};
}

// Returns a port on which nobody listens, below the ephemeral range, so that no outgoing connection
// takes it. The first port depends on the process, since tests run in parallel processes.
inline std::uint16_t free_port() {
  static std::atomic<std::uint32_t> next{static_cast<std::uint32_t>(::getpid()) * 7u};
  asio::io_context io;
  while (true) {
    const auto port = static_cast<std::uint16_t>(10000 + next++ % 10000);
    tcp::acceptor acceptor(io, tcp::v4());
    std::error_code error;
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(loopback(port), error);
    if (!error) return port;
  }
}

inline std::string rendezvous_at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// Returns a correct Hello of rank `rank` of `size`, which tests may change.
inline control::Hello valid_hello(std::uint32_t rank, std::uint32_t size) {
  control::Hello hello;
  hello.set_magic(kControlMagic);
  hello.set_protocol_version(wire::kVersion);
  hello.set_library_version("test");
  hello.set_rank(rank);
  hello.set_world_size(size);
  hello.set_patience_ms(60'000);
  hello.mutable_configuration()->set_communicator_name("world");
  hello.mutable_configuration()->set_datagram_bytes(1400);
  hello.mutable_configuration()->set_transport(static_cast<std::uint32_t>(TransportKind::udp));
  hello.mutable_data()->set_port(5000);
  hello.mutable_data()->set_address(std::string("\x7f\0\0\1", 4));
  hello.set_attempt(1000 + rank);
  hello.set_process(2000 + rank);
  hello.set_place("node-" + std::to_string(rank) + ", process 7");
  return hello;
}

// The greeting of a client.
inline std::string greeting() {
  return {reinterpret_cast<const char*>(kGreeting.data()), kGreeting.size()};
}

// Returns a correct request, which tests may change.
inline std::string request_of(StoreOperation operation, std::string_view key,
                              std::string_view value = {}, std::uint32_t number = 1) {
  StoreRequest request;
  request.operation = operation;
  request.number = number;
  request.key = key;
  request.value = std::as_bytes(std::span(value));
  std::string bytes;
  append_request(request, bytes);
  return bytes;
}

// A blocking TCP connection, made as soon as a listener is there.
class LoopbackPeer {
 public:
  explicit LoopbackPeer(std::uint16_t port) {
    std::error_code error;
    do {
      socket_ = tcp::socket(io_);
      socket_.connect(loopback(port), error);
      if (error) std::this_thread::yield();
    } while (error);
  }
  LoopbackPeer(std::uint16_t port, const std::string& bytes) : LoopbackPeer(port) { say(bytes); }
  explicit LoopbackPeer(tcp::acceptor& acceptor) : socket_(acceptor.accept(io_)) {}

  void say(const std::string& bytes) {
    std::error_code ignored;  // the other side may have hung up, which is for the test to find out
    asio::write(socket_, asio::buffer(bytes), ignored);
  }

  // Waits until the other side hangs up. Returns false if it says something instead.
  bool hangs_up() {
    char byte = 0;
    std::error_code error;
    return socket_.read_some(asio::buffer(&byte, 1), error) == 0;
  }

  void hang_up() { socket_.close(); }

 private:
  asio::io_context io_;
  tcp::socket socket_{io_};
};

// Holds a port as another program would.
class LoopbackListener {
 public:
  explicit LoopbackListener(std::uint16_t port) : acceptor_(io_, loopback(port)) {}
  LoopbackPeer accept() { return LoopbackPeer(acceptor_); }
  void close() { acceptor_.close(); }

 private:
  asio::io_context io_;
  tcp::acceptor acceptor_;
};

}  // namespace leeway::rendezvous
