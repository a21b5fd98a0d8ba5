// The transports of one rank from opening to use. Before the meeting a rank opens those that its
// options allow, and tells rank 0 of them. After the meeting the candidate of the chosen transport
// is connected to its peers and becomes a driver's transport.
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

  // Tells the transport the addresses of all ranks. Called once, before take().
  virtual Status connect(const GroupTransport& transport, Rank self) = 0;

  // Called between connect() and take(). After an error the transport takes no trains to
  // kEveryRank; the text says why.
  virtual Status join_multicast(const asio::ip::address& group, std::uint16_t port) = 0;

  // Lets routers mark datagrams (ECN) instead of dropping them. Only for a sender that slows down
  // for marks. Called before take().
  virtual void allow_marks() {}

  // Hands over the transport. Called once, as the last call.
  virtual std::unique_ptr<DatagramTransport> take() = 0;
};

// Returns what other ranks are told about a candidate.
TransportOffer offer_of(const Candidate& candidate);
// Returns the addresses of all ranks, in the transport's own format.
std::vector<std::vector<std::byte>> addresses_of(const GroupTransport& transport);

// All that this rank brings to the meeting.
struct Candidates {
  std::vector<std::unique_ptr<Candidate>> open;
  LocalConfiguration local;  // told to the others; also says why a transport could not be opened

  // Opens the UDP socket anew at `address`, with the port that the other ranks were told. Must be
  // called before connect().
  Status move_udp(const Options& options, const asio::ip::address& address);

  // Connects the candidate of the chosen transport and hands it over, so call it only once for each
  // kind. Does not join the multicast group.
  Result<std::unique_ptr<Candidate>> connect(const GroupTransport& transport, Rank self);
};

// Always opens UDP, whose address also tells where this host is in the network. Also opens a
// transport that the options name. If the choice is automatic, also opens verbs. It does not if the
// group has one rank, or if faults are to be injected, which needs UDP. If a transport cannot be
// opened, its offer says why. `udp`, if given, is used in place of a new UDP socket.
Result<Candidates> open_candidates(const Options& options,
                                   std::unique_ptr<Candidate> udp = nullptr);

// Wraps a connected transport of the caller's own. Ranks compare only its name.
Candidates candidates_over(std::unique_ptr<DatagramTransport> transport, const Options& options);

// Returns this rank's configuration, without its transports.
LocalConfiguration local_configuration(const Options& options);

// Opens a transport of one kind at `address`. An error says what this host or this build lacks.
Result<std::unique_ptr<Candidate>> open_candidate(TransportKind kind, const Options& options,
                                                  const asio::ip::address& address);

// Returns the address for this host's datagrams: Options::bind_address, else the one by which the
// system would reach rank 0.
Result<asio::ip::address> data_address(const Options& options);

// A device that a transport finds on this host.
struct TransportDevice {
  std::string name;   // "RDMA mlx5_0 port 1", "UCX 1.13.1 posix"
  std::string facts;  // for people: state, MTU, addresses
  bool usable = true;
  std::string remedy;  // what to do if it is not usable
};

// The devices of a transport, never an empty list. If this build or this host has none, an error
// says why.
using Devices = Result<std::vector<TransportDevice>>;
Devices list_devices(TransportKind kind);

// Entries of the list in candidates.cc, each in its own file (candidate_udp.cc, ...).
Result<std::unique_ptr<Candidate>> open_udp(const Options&, const asio::ip::address&);
Result<std::unique_ptr<Candidate>> open_verbs(const Options&, const asio::ip::address&);
Result<std::unique_ptr<Candidate>> open_ucx(const Options&, const asio::ip::address&);
Devices list_verbs_devices();
Devices list_ucx_devices();

}  // namespace leeway::rendezvous
