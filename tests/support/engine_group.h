// N engines of one communicator in virtual time: the library's protocol code without sockets,
// threads or sleeps. The network is a sorted list. The same seed gives the same events.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "collective/engine.h"
#include "impairment/fault_plan.h"

namespace leeway::testing {

struct GroupOptions {
  int size = 4;
  std::size_t datagram_bytes = 1472;
  std::size_t window_bytes = 1 << 20;
  Duration delay = std::chrono::microseconds(100);  // one way
  FaultOptions faults;
  std::uint64_t seed = 1;
  bool sum_payloads = true;
  Duration peer_timeout{0};  // with 0, no rank is ever taken for dead
  // If true, engines believe that a controller paces them, as is required to send parity. No
  // controller does.
  bool paced = false;
  bool one_host = false;  // all ranks are on one host, and engines know it
  // If true, the network delivers multicast to all ranks, and draws faults for each receiver
  // separately.
  bool multicast = false;
};

class EngineGroup {
 public:
  explicit EngineGroup(const GroupOptions& options);

  int size() const { return options_.size; }
  Instant now() const { return now_; }
  collective::Engine& engine(Rank rank) { return *nodes_[rank].engine; }

  // Submits an operation on one rank, without letting time pass. `place`: see collective::Request.
  collective::Request& submit(Rank rank, const collective::OperationSpec& spec,
                              std::optional<std::uint64_t> place = {});
  // Submits on every rank the operation that `make` returns for that rank.
  std::vector<collective::Request*> submit_all(
      const std::function<collective::OperationSpec(Rank)>& make);

  // Lets time pass until `done` returns true or `limit` has passed. Returns false if `done` never
  // returned true.
  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(100));
  bool run(const std::vector<collective::Request*>& requests,
           Duration limit = std::chrono::seconds(100));
  // Lets time pass until every engine is idle and has sent its last confirmations.
  bool settle(Duration limit = std::chrono::seconds(100));

  // Stops a rank. Until thaw() it neither receives, sends nor wakes up. Datagrams for it wait until
  // then.
  void freeze(Rank rank) { nodes_[rank].frozen = true; }
  // Holds back the rank's data, as a pace would. Control datagrams still leave.
  void hold_data(Rank rank) { nodes_[rank].polled = collective::Engine::Poll::control; }
  void thaw(Rank rank);

  // Hands a datagram that the test made to rank `to`, as if `from` had sent it.
  void inject(Rank to, Rank from, std::vector<std::byte> datagram);

  // A test may set this. It is called for every datagram before faults are drawn, and returns false
  // to drop the datagram.
  std::function<bool(Rank from, Rank to, ByteSpan datagram)> filter;

  // A test may set this. It is called for every well-formed datagram that passed the filter, with
  // the datagram's fate on the network.
  std::function<void(const impairment::PacketAddress& packet, const impairment::Fate& fate)>
      observer;

  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t lost_data() const { return lost_data_; }

 private:
  struct Node {
    std::unique_ptr<collective::Engine> engine;
    std::unique_ptr<impairment::FaultPlan> faults;  // for datagrams that arrive here
    bool frozen = false;
    collective::Engine::Poll polled = collective::Engine::Poll::all;
    std::vector<std::pair<Rank, std::vector<std::byte>>> waiting;
  };
  struct Flight {
    Rank from, to;
    std::vector<std::byte> bytes;
  };
  void pump(Rank rank);
  void launch(const Train& train, Rank from);
  void fly(Rank from, Rank to, ByteSpan datagram);
  void arrive(Flight flight);
  std::optional<Instant> next_event() const;

  GroupOptions options_;
  Instant now_{1'000'000'000};
  std::vector<Node> nodes_;
  std::multimap<std::int64_t, Flight> flights_;  // by time of arrival
  std::vector<std::unique_ptr<collective::Request>> requests_;
  std::unique_ptr<protocol::TrainBuffer> buffer_ = std::make_unique<protocol::TrainBuffer>();
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_data_ = 0;
};

}  // namespace leeway::testing
