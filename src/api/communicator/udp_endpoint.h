// This process's UDP socket and the driver over it. All communicators of the process share both,
// also those that meet at different rendezvous.
//
// If several ranks of one group are threads of this process, each has an endpoint of its own. So a
// group takes a seat, under its name, on an endpoint where it has no seat yet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "driving/driver.h"
#include "keys/joined_keys.h"
#include "leeway/options.h"
#include "rendezvous/candidate.h"
#include "transport/udp/udp_transport.h"

namespace leeway::internal {

class UdpEndpoint : public std::enable_shared_from_this<UdpEndpoint> {
 public:
  // A group's seat, which the destructor gives back.
  class Seat {
   public:
    Seat(std::shared_ptr<UdpEndpoint> endpoint, std::string name,
         std::shared_ptr<const keys::OwnIdentity> identity)
        : endpoint_(std::move(endpoint)), name_(std::move(name)), identity_(std::move(identity)) {}
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    UdpEndpoint& endpoint() { return *endpoint_; }
    // The endpoint's identity, with the group's secrets. Null without a secret.
    const std::shared_ptr<const keys::OwnIdentity>& identity() const { return identity_; }

   private:
    const std::shared_ptr<UdpEndpoint> endpoint_;
    const std::string name_;
    const std::shared_ptr<const keys::OwnIdentity> identity_;
  };

  // Takes a seat for the group of the options, on an existing endpoint or a new one. Returns null
  // if the group needs a socket of its own or none: with injected faults, with multicast, without
  // UDP, or alone. `secrets` is null if there are none. Groups with different secrets share an
  // endpoint only if the secrets are for meetings only: a pair of processes has one key for all its
  // groups.
  static Result<std::unique_ptr<Seat>> take_seat(const Options& options,
                                                 std::shared_ptr<const keys::Secrets> secrets);

  // Returns the candidate that describes this endpoint to the other ranks.
  std::unique_ptr<rendezvous::Candidate> candidate();
  // Description of this endpoint for other ranks of this host.
  const rendezvous::MemoryPlace& memory() const { return memory_; }
  // A random number by which all groups know this process's endpoint.
  std::uint64_t process() const { return process_; }
  const std::shared_ptr<driving::Driver>& driver() const { return driver_; }
  // Returns a function that tells whether a train leaves as one message (GSO). Only the thread that
  // drives may call the function.
  std::function<bool()> segmentation() const {
    return [&udp = *udp_] { return udp.segmentation(); };
  }

  // Call it if peers reach the process at `address` and not at the socket's own. Opens a new socket
  // there with the old socket's port, keys and name. Returns kUnavailable if groups use the old
  // socket already, or if the port is taken at `address`.
  Status move_to(const Options& options, const asio::ip::address& address);

  // Call it when a group has chosen a congestion control that this endpoint was opened without.
  // From now on the endpoint paces all groups of the process, also earlier ones, because all of
  // them share the link.
  void pace(const Options& options);

  // Returns lane 1 or up of this endpoint, which is opened at the first call. All groups on the
  // endpoint share the lane, because a pair of processes has one key for each lane.
  Result<std::shared_ptr<UdpEndpoint>> lane(const Options& options, int lane);

  // Returns the slots of a group's ranks. A process that another group has met keeps its slot. With
  // a secret it keeps its address and keys, too, because the rank that wrote this group's table may
  // be no member of the other group.
  Result<std::vector<Rank>> meet(const rendezvous::Group& group, Rank self);

 private:
  // A socket and the driver over it, which move together.
  struct Opened {
    std::shared_ptr<driving::Driver> driver;
    transport::UdpTransport* udp = nullptr;  // owned by the driver
    bool shares_memory = false;
  };

  UdpEndpoint(Opened opened, std::shared_ptr<const keys::OwnIdentity> identity,
              const rendezvous::MemoryPlace& memory, std::uint8_t lane);
  static Result<Opened> open_socket(const Options& options, const asio::ip::address& address,
                                    const keys::OwnIdentity* identity, std::uint8_t lane);
  static Result<std::shared_ptr<UdpEndpoint>> open(
      const Options& options, const asio::ip::address& address,
      std::shared_ptr<const keys::OwnIdentity> identity, std::uint8_t lane);

  // Identifies a process. With a secret only the key identifies it, because two slots with one key
  // would seal with the same nonces.
  struct Process {
    std::uint64_t number = 0;  // number of the process; zero with a secret
    keys::Key public_key{};    // zero without one
    // NOLINTNEXTLINE(modernize-use-nullptr): what the comparison compares with
    friend auto operator<=>(const Process&, const Process&) = default;
  };

  std::shared_ptr<driving::Driver> driver_;
  // Owned by the driver; all members but constants may be used only during a Session.
  transport::UdpTransport* udp_;
  const std::uint64_t process_;
  const std::shared_ptr<const keys::OwnIdentity> identity_;  // not set without a secret
  const rendezvous::MemoryPlace memory_;
  const std::uint8_t lane_;
  std::map<int, std::shared_ptr<UdpEndpoint>> lanes_;
  std::map<Process, Rank> slots_;
  std::multiset<std::string> seats_;  // taken
};

}  // namespace leeway::internal
