// Writes one log line for each thing that an operator must know of a running driver: peers that
// fall silent, die or come back, and packets lost for a reason that the operator can remove.
//
// docs/wide-area.md lists all lines, and a test compares the list with the code.
#pragma once

#include <map>
#include <vector>

#include "driving/snapshot.h"
#include "rendezvous/log.h"

namespace leeway::observe {

class OperatorLog {
 public:
  struct Facts {
    bool injected_losses = false;  // losses are intended, so they cause no warning
    std::size_t buffer_bytes = 0;  // size that was requested for the socket buffer
  };

  // The log must outlive this object.
  OperatorLog(rendezvous::Log& log, const Facts& facts) : log_(log), facts_(facts) {}

  // Compares with the previous snapshot, and logs what changed.
  void look(const driving::Snapshot& snapshot);
  // Logs that segmentation offload was in use and no longer is.
  void lost_segmentation();

 private:
  // Counters at the start of the period over which they are judged.
  struct Sums {
    Instant at;
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t host_dropped = 0;
    std::uint64_t send_errors = 0;
    std::uint64_t forged = 0;
    std::uint64_t replayed = 0;
    std::uint64_t unknown = 0;
    std::uint64_t refused_by_relays = 0;
  };
  static Sums sums_of(const driving::Snapshot& snapshot);
  void judge(const driving::Snapshot& snapshot, const Sums& now);
  // Last known state of a peer in a communicator.
  struct Known {
    driving::PeerState state = driving::PeerState::joining;
    bool relayed = false;
    Rank relay = kNoRank;
  };
  void tell_peers(const driving::ChannelView& channel, std::vector<Known>& known);
  void tell_processes(const driving::Snapshot& snapshot);
  void tell_shares(const driving::Snapshot& snapshot);
  void tell_relay(const driving::ChannelView& channel, const driving::PeerView& peer, Known& known);

  rendezvous::Log& log_;
  const Facts facts_;
  // Last known states of peers, by epoch and then by index in ChannelView::peers.
  std::map<std::uint32_t, std::vector<Known>> peers_;
  // Last known state of each process. Silence and death are a process's, so each is logged once,
  // however many communicators the process is in.
  std::map<Rank, driving::PeerState> processes_;
  // Relay shares by the relay's process, as of its latest log line.
  struct ToldShare {
    Instant at;
    seal::RelayShares::Share share;
  };
  std::map<Rank, ToldShare> shares_;
  Sums since_;
  bool began_ = false;
};

}  // namespace leeway::observe
