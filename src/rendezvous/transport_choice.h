// The transports of one rank from opening to choice: UDP always, which also says where this host is
// in the network, and beside it what the options ask for or, left to themselves, could use.
#pragma once

#include <memory>
#include <vector>

#include "leeway/options.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/opened_transport.h"

namespace leeway::rendezvous {

class TransportChoice {
 public:
  // What was opened, or why it could not be.
  struct Candidate {
    TransportKind kind;
    std::unique_ptr<OpenedTransport> opened;
    Status obstacle;
  };

  // Opens UDP, and of verbs and UCX the one that is asked for by name; both where the choice is
  // automatic, unless there is nobody to send to or packet loss is to be injected, which means
  // UDP's. That one of these cannot be opened is no error here: rank 0 tells all ranks, where it
  // matters.
  static Result<TransportChoice> open(const Options& options);

  const std::vector<Candidate>& candidates() const { return candidates_; }

  // What this rank brings to the rendezvous.
  LocalConfiguration local_configuration(const Options& options) const;

  // The transport of a lane, once for each kind. Told its peers, not yet its multicast group.
  Result<std::unique_ptr<OpenedTransport>> connect(const Lane& lane, Rank self);

 private:
  std::unique_ptr<OpenedTransport> udp_;
  std::vector<Candidate> candidates_;
};

// What the options say about this rank; nothing about its transports.
LocalConfiguration local_configuration(const Options& options);

// The address of this host from which data go: as asked, or the one by which the system would reach
// rank 0.
Result<asio::ip::address> data_address(const Options& options);

}  // namespace leeway::rendezvous
