// Seals datagrams that leave by any transport, and opens those that arrive (src/security/seal).
//
// Sealing copies slices into trains of this class, so the caller's memory is never borrowed. The
// inner transport may read these trains for a while. If the inner transport has no room for a
// sealed train, that train stays here, counts as taken, and goes out with the next call.
//
// meet() adds peers one by one. Trains to a peer that was not met are lost and counted, and
// datagrams from it are refused. There is no multicast.
//
// Keys change by messages between the sealing layers of two peers (seal/association.h), which leave
// in receive() and wait().
//
// If the inner transport has network addresses, a peer is recognised by the tag in its datagrams
// alone, and may move to another address (seal/roaming.h). Challenges and keep-alives leave in
// receive() and wait(). A peer that cannot be reached directly is reached through a relay, and this
// process is a relay for others (seal/forwarding.h).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "leeway/transport.h"
#include "seal/associations.h"
#include "seal/forwarding.h"
#include "seal/relay_shares.h"
#include "seal/roaming.h"
#include "transport/whereabouts.h"

namespace leeway::transport {

class SealedTransport final : public DatagramTransport {
 public:
  using ClockFunction = std::function<Instant()>;

  SealedTransport(std::unique_ptr<DatagramTransport> inner, ClockFunction clock,
                  const seal::Rotation& rotation = {}, std::uint8_t lane = 0);

  // Sets the keys for datagrams to and from this peer from now on. Call it between send() and
  // receive() calls. `name` is the number by which other processes know the peer, or 0 if they do
  // not know it. seal::Associations::meet() says what `meeting` is.
  void meet(Rank slot, const seal::PairKeys& keys, const seal::CipherMaker& maker,
            std::uint64_t name = 0, const keys::Key& meeting = {});
  bool needs_keys(Rank slot, const keys::Key& meeting) const {
    return seals_.needs_keys(slot, meeting);
  }
  bool knows(Rank slot) const { return seals_.knows(slot); }

  std::string_view name() const override { return name_; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override;
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { inner_->wake(); }
  TransportCounters counters() const override;
  const Status& status() const override { return inner_->status(); }

  // Sets whether operations are open. While some are open, peers get keep-alives more often.
  void set_busy(bool busy) {
    if (where_ != nullptr) roaming_.set_busy(clock_(), busy);
  }
  // Returns a peer whose traffic has moved to another address or relay since an earlier call
  // returned that peer, or nullopt if there is none.
  std::optional<seal::Roaming::Move> poll_move();
  // Returns the relay through which datagrams go to the peer, or kNoRank if they go straight to its
  // address.
  Rank relay_of(Rank slot) const {
    return where_ != nullptr && roaming_.knows(slot) ? roaming_.via(slot) : kNoRank;
  }
  // Sets the rate in bits per second at which this process may send, or 0 while the rate is
  // unknown. A share of the rate is for datagrams that are forwarded for other processes.
  void set_uplink(double bits_per_second) { forwarding_.set_uplink(bits_per_second); }
  // Returns the bytes that were forwarded for others since the last call.
  std::uint64_t take_forwarded() {
    const std::uint64_t all = forwarding_.counters().bytes;
    return all - std::exchange(forwarded_, all);
  }
  const seal::Forwarding::Counters& forwarded() const { return forwarding_.counters(); }
  // Returns the next relay that has announced a new rate at which it forwards for this process, or
  // nullopt if there is none.
  std::optional<seal::RelayShares::Change> poll_share() { return shares_.poll(); }
  const seal::RelayShares& shares() const { return shares_; }
  const NetworkAddress& address_of(Rank slot) const { return roaming_.address_of(slot); }

  const seal::Counters& seal_counters() const { return seals_.counters(); }
  // Returns the counters as rows: "sealed", "opened", "refused_forged", ...
  std::vector<std::pair<std::string, std::uint64_t>> named_seal_counters() const;

 private:
  // Limit on the sealed trains that the inner transport has not taken, or still reads.
  static constexpr std::size_t kSlots = 16;

  struct SealedTrain {
    std::vector<std::byte> memory;
    Slice slice;
  };

  static std::size_t slots_of(const Train& train, Rank relay);
  MutableByteSpan room_for(std::size_t bytes);
  void commit(Rank to, std::size_t segment_bytes);
  std::array<std::byte, seal::kRelayHeadBytes> onward_head(Rank to) const;
  void prepare(Instant now, const Train& train);
  void prepare_relayed(Instant now, const Train& train, Rank relay);
  void prepare_onward(Rank to, Rank relay, ByteSpan sealed, std::size_t segment_bytes);
  void prepare_messages(Instant now);
  void flush();
  bool open_from_anywhere(Instant now, Received& datagram);
  bool open_relayed(Instant now, Received& datagram, const seal::RelayHead& head,
                    const seal::Associations::Opened& outer);
  void send_path_message(const seal::Roaming::Outgoing& outgoing);
  void send_share(Instant now, Rank to);
  void serve(Instant now);
  std::size_t slot_of(std::uint64_t train) const { return (train - first_) % kSlots; }

  const std::unique_ptr<DatagramTransport> inner_;
  Whereabouts* const where_;  // inner_, if it has addresses; or null
  const ClockFunction clock_;
  const std::string name_;
  TransportLimits limits_;
  seal::Associations seals_;
  seal::Roaming roaming_;
  seal::Forwarding forwarding_;
  seal::RelayShares shares_;
  std::uint64_t forwarded_ = 0;  // bytes that take_forwarded() has returned
  // The train that was sealed last for its receiver, but not yet for its relay
  std::vector<std::byte> inner_bytes_;
  std::vector<std::byte> forwarding_bytes_;
  std::vector<seal::Roaming::Move> moves_;
  std::vector<SealedTrain> trains_;   // slots that were never needed have no memory
  std::vector<Train> ready_;          // views of the trains in trains_
  std::uint64_t sealed_ = 0;          // trains sealed so far
  std::uint64_t taken_ = 0;           // trains that the inner transport took
  std::uint64_t released_ = 0;        // trains that it no longer reads
  std::uint64_t first_ = 0;           // number of the train that lies in slot 0
  std::uint64_t to_strangers_ = 0;    // trains that were dropped
  std::uint64_t from_strangers_ = 0;  // datagrams of unknown addresses that no member sealed
};

}  // namespace leeway::transport
