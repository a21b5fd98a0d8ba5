// Rank 0's side of the rendezvous: one TCP listener and a single-threaded event loop inside run().
//
// A connection is a stranger until its Hello is complete and says the magic; strangers are bounded
// in number, bytes and time and are dropped without a trace on the others. A rank that hangs up
// before the group is complete may come again. The first rank that does not fit ends the meeting
// for everybody, with the same text.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/agreement.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/control_message.h"

namespace leeway::rendezvous {

class RendezvousServer {
 public:
  // All references must outlive the server; `log` may be null.
  RendezvousServer(const LocalConfiguration& root, const RendezvousLimits& limits, Log* log);

  // Once per object.
  Result<Group> run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    Connection(asio::io_context& io, asio::ip::tcp::socket accepted)
        : socket(std::move(accepted)), limit(io) {}
    asio::ip::tcp::socket socket;
    asio::steady_timer limit;  // time to say Hello
    asio::ip::tcp::endpoint remote;
    IncomingFrame frame;
    char after_hello = 0;  // a rank says nothing more; reading notices when it hangs up
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  struct Member {
    ConnectionPtr connection;
    Joined joined;
  };

  Status listen();
  Status open_acceptor(const asio::ip::tcp::endpoint& endpoint);

  void accept_next();
  void on_accept(std::error_code error, asio::ip::tcp::socket socket);
  void make_room_for_stranger();
  void read_hello(const ConnectionPtr& connection);
  void on_hello(const ConnectionPtr& connection, FrameOutcome outcome);
  void drop_stranger(const ConnectionPtr& connection, const char* reason);

  void admit(const ConnectionPtr& connection, control::Hello hello);
  void watch(Rank rank, const ConnectionPtr& connection);
  void shorten_patience(std::uint32_t patience_ms);
  void arm_patience();

  void complete();
  void fail(const Status& reason);
  void on_patience_over();
  void tell(const ConnectionPtr& connection, const std::shared_ptr<const std::string>& frame);
  void tell_failure(const ConnectionPtr& connection, std::uint32_t rank);
  void stay(Duration time);
  void stop_when_told();

  std::vector<Rank> missing_ranks() const;

  const LocalConfiguration& root_;
  const RendezvousLimits& limits_;
  Log* const log_;

  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_{io_};
  asio::steady_timer retry_accept_{io_};
  asio::steady_timer patience_timer_{io_};
  Clock::time_point patience_end_;

  std::list<ConnectionPtr> strangers_;          // oldest first
  std::vector<std::optional<Member>> members_;  // by rank; [0] stays empty
  std::optional<Group> group_;
  std::optional<Status> failure_;
  std::shared_ptr<const std::string> rejection_;
  std::set<std::uint32_t> told_ranks_;  // ranks that have been sent the failure
  int writes_pending_ = 0;
  std::int64_t bytes_pending_ = 0;  // of their frames
  bool leaving_ = false;            // nothing is awaited any more but the writes
};

}  // namespace leeway::rendezvous
