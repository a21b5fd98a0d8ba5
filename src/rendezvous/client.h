// The side of ranks 1 .. size-1: connects to rank 0, again and again until it is there, says Hello
// and waits for the table. Each step runs the event loop on the calling thread for no longer than
// the time that is left.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include "leeway/status.h"
#include "rendezvous/address.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/control_message.h"

namespace leeway::rendezvous {

class RendezvousClient {
 public:
  explicit RendezvousClient(const LocalConfiguration& local) : local_(local) {}

  // Once per object.
  Result<Group> run();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Result<Group>> attempt(const HostPort& where);
  bool connect(const std::vector<asio::ip::tcp::endpoint>& endpoints);
  bool connect_one(const asio::ip::tcp::endpoint& endpoint);
  bool say_hello();
  std::optional<Result<Group>> hear_welcome();
  std::string hello_frame() const;

  // Runs the loop until `done` has a value; false when time is up, the socket then being closed.
  template <typename T>
  bool run_until(Clock::time_point end, const std::optional<T>& done);

  const LocalConfiguration& local_;
  asio::io_context io_{1};
  asio::ip::tcp::socket socket_{io_};
  Clock::time_point deadline_;
  Status obstacle_;  // why the last attempt came to nothing
};

}  // namespace leeway::rendezvous
