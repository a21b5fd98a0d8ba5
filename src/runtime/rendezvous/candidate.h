// The transports of one rank from opening to use. Before the meeting a rank opens what its options
// allow and tells rank 0. After the meeting the candidate of the chosen transport learns where its
// peers are, and becomes a driver's transport.
#pragma once

#include <asio/ip/address.hpp>
#include <memory>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/transport.h"
#include "rendezvous/group.h"

namespace leeway::rendezvous {

// A transport that is open and not yet in use.
class Candidate {
 public:
  virtual ~Candidate() = default;

  virtual TransportKind kind() const = 0;
  // Address at which peers reach this rank.
  virtual GroupTransport::Member place() const = 0;
  virtual const TransportLimits& limits() const = 0;

  // Tells it where all ranks are. Called once, before take().
  virtual Status connect(const GroupTransport& transport, Rank self) = 0;

  // Called between connect() and take(). After an error, trains to kEveryRank are not taken; the
  // text says why.
  virtual Status join_multicast(const asio::ip::address& group, std::uint16_t port) = 0;

  // Allows queues to mark datagrams (ECN), as the sender slows down for marks. Called before
  // take().
  virtual void allow_marks() {}

  // Called once, at the end.
  virtual std::unique_ptr<DatagramTransport> take() = 0;
};

// What the others are told about a candidate.
TransportOffer offer_of(const Candidate& candidate);
// The addresses of all ranks, as their offers told them.
std::vector<std::vector<std::byte>> addresses_of(const GroupTransport& transport);

// All that this rank brings to the meeting.
struct Candidates {
  std::vector<std::unique_ptr<Candidate>> open;
  LocalConfiguration local;  // told to the others; also says why a transport could not be opened

  // Moves the UDP socket to this address, with the port that the others were told. Must be called
  // before connect().
  Status move_udp(const Options& options, const asio::ip::address& address);

  // Connects and returns the candidate of a transport, once for each kind. It then knows its peers,
  // not yet its multicast group.
  Result<std::unique_ptr<Candidate>> connect(const GroupTransport& transport, Rank self);
};

// Always opens UDP, whose address also tells where this host is in the network. Also opens the
// transport that is asked for by name. If the choice is automatic, opens verbs, unless there is
// nobody to send to or faults are to be injected, which only UDP does. If that fails, its offer
// says so, and rank 0 tells all ranks if it matters. `udp` is an open socket to use in place of a
// new one.
Result<Candidates> open_candidates(const Options& options,
                                   std::unique_ptr<Candidate> udp = nullptr);

// A connected transport of the caller's own. Ranks agree on its name alone.
Candidates candidates_over(std::unique_ptr<DatagramTransport> transport, const Options& options);

// This rank's configuration as the options say it, without its transports.
LocalConfiguration local_configuration(const Options& options);

// Opens one kind alone, from this host's address towards the others. An error says what this host
// or this build lacks.
Result<std::unique_ptr<Candidate>> open_candidate(TransportKind kind, const Options& options,
                                                  const asio::ip::address& address);

// The address of this host from which data go: the one asked for, or the one by which the system
// would reach rank 0.
Result<asio::ip::address> data_address(const Options& options);

// A device that a transport finds on this host.
struct TransportDevice {
  std::string name;   // "RDMA mlx5_0 port 1", "UCX 1.13.1 posix"
  std::string facts;  // for people: state, MTU, addresses
  bool usable = true;
  std::string remedy;  // where it is not
};

// The devices of a transport, never an empty list. If this build or this host has none, an error
// says why.
using Devices = Result<std::vector<TransportDevice>>;
Devices list_devices(TransportKind kind);

// For the list in candidates.cc: one file each (candidate_udp.cc, ...).
Result<std::unique_ptr<Candidate>> open_udp(const Options&, const asio::ip::address&);
Result<std::unique_ptr<Candidate>> open_verbs(const Options&, const asio::ip::address&);
Result<std::unique_ptr<Candidate>> open_ucx(const Options&, const asio::ip::address&);
Devices list_verbs_devices();
Devices list_ucx_devices();

}  // namespace leeway::rendezvous
