// The server of a TcpRendezvous without its sockets. It takes the bytes of connections, and returns
// answers and connections to close. The caller passes the time.
//
// A connection is a stranger's until its greeting is complete. Strangers are limited in number,
// bytes and time, and so are connections that greet and then waste the server's resources. A
// connection is closed only for its own acts, with two exceptions. If there are too many strangers,
// a random one of them is closed. If there are too many connections, the one that has been idle
// longest is closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/rendezvous_limits.h"
#include "rendezvous/store_frame.h"
#include "rendezvous/store_table.h"

namespace leeway::rendezvous {

class StoreServer {
 public:
  using Id = StoreTable::Owner;  // identifies a connection; never 0, never used twice

  // `table` must outlive the server. This process also reads the table itself, and writes to it by
  // put_here(). `seed` seeds the choice of the stranger to close.
  StoreServer(const RendezvousLimits& limits, StoreTable& table, std::uint64_t seed = 0)
      : limits_(limits), table_(table), seed_(seed) {}

  // `network` is network_of() of the remote address. Network 0 has no limit of its own.
  void on_accept(Instant now, Id id, std::uint64_t network = 0);
  void on_bytes(Instant now, Id id, ByteSpan received);
  void on_closed(Id id);
  // Call it when `answers` more answers from poll_answers() were sent.
  void on_sent(Instant now, Id id, std::size_t answers);
  void on_wake(Instant now);
  std::optional<Instant> next_wake() const;

  // Puts a value for this process, without a connection. Returns false if there is no room.
  bool put_here(Instant now, std::string_view key, ByteSpan value, std::uint32_t readers);

  struct Answer {
    Id to = 0;
    std::vector<std::byte> head;  // greeting, header
    StoreTable::Value value;      // follows; may be null
  };
  std::vector<Answer> poll_answers();
  bool has_answers() const { return !answers_.empty(); }

  struct Closing {
    Id id = 0;
    const char* reason = nullptr;
  };
  std::vector<Closing> poll_closings();

  struct Counters {
    std::uint64_t accepted = 0;
    std::uint64_t strangers = 0;  // closed without a greeting
    std::uint64_t refused = 0;    // closed after it
    std::uint64_t full = 0;       // puts for which there was no room
  };
  const Counters& counters() const { return counters_; }
  std::size_t connections() const { return connections_.size(); }
  // Bytes of values and of incomplete frames.
  std::size_t bytes() const { return table_.bytes() + buffered_; }

 private:
  // Phase of a connection. Each has its own time limit.
  enum class Phase : std::uint8_t { stranger = 0, receiving, sending, idle, busy };
  static constexpr std::size_t kPhases = 5;

  struct Connection {
    FrameReader reader;
    Phase phase = Phase::stranger;
    std::list<Id>::iterator place;  // in phases_[phase]
    Instant since;                  // when it entered the phase
    std::uint64_t network = 0;
    bool greeted = false;  // the server's own greeting is among its answers
    std::map<std::uint32_t, std::string> waiting;
    std::set<std::string> announced;
    std::size_t unsent = 0;
    const char* doomed = nullptr;  // why it is to be closed
  };
  using Connections = std::map<Id, Connection>;

  void serve(Id id, Connection& connection, const StoreRequest& request);
  void put(Id id, Connection& connection, const StoreRequest& request);
  void get(Id id, Connection& connection, const StoreRequest& request);
  void answer(Id id, Connection& connection, StoreOutcome outcome, std::uint32_t number,
              StoreTable::Value value = nullptr);
  void settle(Id id, Connection& connection);
  void move_to(Id id, Connection& connection, Phase phase);
  void close(Connections::iterator at, const char* reason);
  void make_room_for_request(Id id);
  void make_room_for_stranger(std::uint64_t network);
  void close_one_of(const std::vector<Id>& strangers, const char* reason);
  void forget(Connections::iterator at);
  bool put_into_table(std::string_view key, ByteSpan value, Id id, std::uint32_t readers);
  Duration patience_in(Phase phase) const;
  const std::list<Id>& in_phase(Phase phase) const {
    return phases_[static_cast<std::size_t>(phase)];
  }

  const RendezvousLimits limits_;
  StoreTable& table_;
  const std::uint64_t seed_;
  Instant now_;
  Connections connections_;
  std::array<std::list<Id>, kPhases> phases_;  // longest in the phase first
  std::size_t buffered_ = 0;
  std::size_t requests_ = 0;  // waiting or not yet sent, of all connections
  std::vector<Answer> answers_;
  std::vector<Closing> closings_;
  Counters counters_;
};

}  // namespace leeway::rendezvous
