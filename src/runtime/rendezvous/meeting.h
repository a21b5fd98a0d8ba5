// One meeting of a group in a store. proto/README.md, 7.3 to 7.8, has the rules.
//
//   rank 0                               another rank
//   puts the Invitation at "root"   ->   gets it, sees that version and size fit
//   gets the Hellos, checks each    <-   puts its Hello at "<meeting>/hello/<rank>"
//   puts the Welcome at             ->   gets it
//     "<meeting>/outcome"
//
// A meeting has a random number, which is part of its keys in the store, so values of an earlier
// meeting are never taken for this one's. A store does not know which processes live. So a waiting
// rank looks from time to time whether the invitation is still the same, and whether another
// process claims its rank. A rank that finds an error puts it as the outcome, which all ranks read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agreement.h"
#include "rendezvous/control_message.h"
#include "rendezvous/group.h"
#include "rendezvous/tcp_client.h"
#include "rendezvous/tcp_server.h"

namespace leeway::rendezvous {

using MeetingClock = std::chrono::steady_clock;

// Interval at which waiting ranks look at the store again: short at first, then long (WIRE 7.7).
inline constexpr Duration kLookFirst = std::chrono::milliseconds(100);
inline constexpr Duration kLookMax = std::chrono::seconds(1);

// Keys in the store at which a group meets.
class MeetingKeys {
 public:
  explicit MeetingKeys(const LocalConfiguration& local);

  std::string root() const { return group_ + "/root"; }
  std::string hello(std::uint64_t meeting, Rank rank) const;
  std::string outcome(std::uint64_t meeting) const;
  // Key of the address of rank 0's TCP server, if the caller's store serves only to find it.
  std::string address() const { return group_ + "/address"; }
  // Key of the restart count and name of the last group that met, for error texts.
  static constexpr const char* kLatest = "leeway/%latest";
  const std::string& name_and_start() const { return name_and_start_; }

 private:
  std::string group_;
  std::string name_and_start_;
};

// Where a meeting takes place.
struct MeetingPlace {
  Rendezvous* store = nullptr;
  std::string name;             // for texts: "127.0.0.1:4000", "the store"
  bool has_live_keys = false;   // the store erases a Hello when its process ends
  TcpServer* own = nullptr;     // set if the store is this process's server
  TcpClient* client = nullptr;  // set if the store is another process's server
};

// Returns how long one call of the store may wait: `patience`, but at most 100 ms if the caller may
// cancel the meeting, so that a cancelled meeting ends soon.
Duration at_once(const LocalConfiguration& local, Duration patience);
// The error of a meeting that its caller cancelled.
Status taken_back(const LocalConfiguration& local);

// A random number, never 0.
std::uint64_t random_number();
// Erases a key. In a store without erase() its value becomes empty.
void forget(Rendezvous& store, const std::string& key);

// Decides when a waiting rank should log that it waits.
class WaitReport {
 public:
  using Clock = MeetingClock;

  WaitReport(Clock::time_point begin, Duration first) : begin_(begin), after_(first) {}

  // Returns true if a log line is due. The next line is then due after twice as long a wait.
  bool due(Clock::time_point now);
  // Returns the time until the next line is due.
  Duration left(Clock::time_point now) const { return begin_ + after_ - now; }
  Duration waited(Clock::time_point now) const { return now - begin_; }

 private:
  const Clock::time_point begin_;
  Duration after_;
};

// Rank 0's side of a meeting.
class MeetingHost {
 public:
  // The arguments must outlive the object; `log` may be null.
  MeetingHost(const LocalConfiguration& root, const MeetingPlace& place,
              const RendezvousLimits& limits, Log* log);

  // Call it once.
  Result<Group> run();

 private:
  using Clock = MeetingClock;
  struct Member {
    control::Hello hello;
    bool here = false;
  };

  Status invite();
  Status invite_patiently();
  void say_waiting(const std::string& why);
  std::string waited_for(const TcpServer::Refusals& refused) const;
  TcpServer::Refusals refused() const;
  void collect(Duration patience);
  bool admit(Rank rank, ByteSpan value);
  bool hear_outcome(ByteSpan value);
  void look_at_hellos();
  void look_at_invitation();
  void shorten_patience(std::uint32_t patience_ms);
  Result<Group> conclude();
  void fail(const Status& reason) {
    if (!failure_) failure_ = reason;
  }
  Status put_outcome(ByteSpan value);
  void tell_failure();
  void close_meeting();
  void wait_told(Duration patience);
  std::vector<Rank> missing_ranks() const;
  Status too_few() const;

  const LocalConfiguration& root_;
  const MeetingPlace& place_;
  const RendezvousLimits& limits_;
  Log* const log_;
  const MeetingKeys keys_;
  const std::uint64_t meeting_ = random_number();
  const std::uint64_t refused_before_;  // connections refused in earlier meetings

  WaitReport report_;
  Clock::time_point patience_end_;
  std::vector<Member> members_;  // by rank; [0] is this one
  std::size_t missing_ = 0;
  std::optional<Status> failure_;
  bool told_by_other_ = false;  // another rank has put the outcome
};

// The other ranks' side of a meeting.
class MeetingGuest {
 public:
  // The arguments must outlive the object; `log` may be null.
  MeetingGuest(const LocalConfiguration& local, const MeetingPlace& place,
               const RendezvousLimits& limits, Log* log);

  // Call it once.
  Result<Group> run();

 private:
  using Clock = MeetingClock;
  using Outcome = std::optional<Result<Group>>;  // without a value: try again

  Duration left() const { return end_ - Clock::now(); }
  Outcome find_meeting();
  Outcome attend(const control::Invitation& invitation);
  Result<std::vector<std::byte>> say_hello_and_hear(std::uint64_t meeting, Duration patience);
  std::vector<std::byte> hello(std::uint64_t meeting) const;
  Status say_hello(std::uint64_t meeting);
  Outcome judge(std::uint64_t meeting, ByteSpan value);
  enum class Seen : std::uint8_t { unchanged, meeting_is_over, other_process };
  Seen look_around(std::uint64_t meeting);
  Result<Group> refuse(std::uint64_t meeting, const Status& reason);
  void pause(Duration at_most);
  Status failure() const;
  void note_absence();
  void note_missing(std::uint64_t meeting);
  void say_waiting();

  const LocalConfiguration& local_;
  const MeetingPlace& place_;
  Log* const log_;
  const MeetingKeys keys_;
  const std::uint64_t attempt_ = random_number();
  const Clock::time_point end_;
  std::uint64_t over_ = 0;   // a meeting that is not for this rank
  std::string other_place_;  // where the process runs that claims the same rank
  Status obstacle_;          // why there is no outcome yet
  const char* seen_ = "";    // text about other groups there, as of the latest look
  WaitReport report_;
  Duration pause_;
};

}  // namespace leeway::rendezvous
