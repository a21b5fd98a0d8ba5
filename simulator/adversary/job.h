// A job of a few processes in virtual time. They meet in a store and compute exact sums. They run
// the library's code from rendezvous (its messages), keys, seal and core. For a while the keeper of
// the store changes values, and an attacker changes datagrams.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adversary/keeper.h"
#include "adversary/watched_cipher.h"
#include "collective/node.h"
#include "engine/trace_hash.h"
#include "rendezvous/group.h"
#include "seal/associations.h"
#include "swarm/dice.h"

namespace leeway::sim::adversary {

class Job {
 public:
  explicit Job(std::uint64_t seed);
  ~Job();

  // Runs the job; call it once. Returns a text about the first broken rule, or an empty text.
  std::string run();

  std::uint64_t right_calls() const { return right_calls_; }
  std::uint64_t failed_calls() const { return failed_calls_; }
  std::uint64_t refused_tables() const { return refused_tables_; }
  std::uint64_t key_phases() const { return key_phases_; }
  std::uint64_t datagrams() const { return datagrams_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t trace_hash() const { return trace_.value(); }

 private:
  struct Call;
  struct Membership;
  struct Process;
  struct Meeting;
  struct Flying {
    std::uint16_t from = 0;  // addresses: a port each
    std::uint16_t to = 0;
    Bytes bytes;
  };

  keys::Key random_key();
  void make_processes();
  void meet(std::uint32_t number);
  rendezvous::LocalConfiguration configuration(const Meeting& meeting, Rank rank) const;
  bool hear(Meeting& meeting, Rank rank, ByteSpan value);
  void join(Process& process, std::unique_ptr<Meeting> meeting);
  bool introduce(Process& process, const Meeting& meeting, std::vector<Rank>& slots);
  void prove(Process& process);
  void submit(Process& process, Membership& membership);
  void pump(Process& process);
  void launch(Process& process, const Train& train);
  void tamper(Flying flying);
  void deliver(Flying flying, Duration further = Duration(0));
  void arrive(Flying& flying);
  std::optional<Instant> next_event() const;
  bool all_done() const;
  bool reads(Process& reader, Process& writer);
  std::string verdict();

  swarm::Dice dice_;
  std::shared_ptr<const keys::Secrets> secrets_;
  std::unique_ptr<Keeper> keeper_;
  SealBook book_;
  Instant now_{1'000'000'000};
  // one of this many datagrams is tampered with; 0: none is
  std::uint32_t tampers_one_in_ = 0;
  Instant calm_;  // time at which the tampering ends
  std::vector<std::unique_ptr<Process>> processes_;
  std::multimap<std::int64_t, std::pair<std::size_t, std::unique_ptr<Meeting>>> joins_;  // by time
  std::multimap<std::int64_t, Flying> flights_;                                          // by time
  std::vector<Flying> seen_;
  std::unique_ptr<protocol::TrainBuffer> buffer_ = std::make_unique<protocol::TrainBuffer>();
  std::uint64_t right_calls_ = 0;
  std::uint64_t failed_calls_ = 0;
  std::uint64_t refused_tables_ = 0;
  std::uint64_t key_phases_ = 0;
  std::uint64_t datagrams_ = 0;
  std::uint64_t events_ = 0;
  TraceHash trace_;
};

}  // namespace leeway::sim::adversary
