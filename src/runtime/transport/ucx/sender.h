// Sends trains: each datagram is an eager active message, which UCX gathers into its device's
// memory.
//
// If the device is full, UCX gathers the datagram later. The datagram is then copied aside, so
// trains are never borrowed. Without the copy a peer that stopped taking messages would keep the
// caller's memory for ever.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/slice_cursor.h"
#include "transport/ucx/message.h"
#include "transport/ucx/receiver.h"

namespace leeway::transport {

class UcxSender {
 public:
  // Counts its work in `counters`. `receiver` must have the same worker, because one progress call
  // of UCX sends and receives.
  UcxSender(UcxReceiver& receiver, TransportCounters& counters)
      : receiver_(receiver), counters_(counters), slots_(kSlots) {}
  ~UcxSender();
  UcxSender(const UcxSender&) = delete;
  UcxSender& operator=(const UcxSender&) = delete;

  Status open(std::size_t datagram_bytes_max);
  // Connects to all ranks. `addresses` holds UCX's own addresses, by rank; `self` is this rank.
  Status connect(ucp_worker_h worker, std::span<const ByteSpan> addresses, Rank self,
                 std::uint64_t group);

  std::size_t send(std::span<const Train> trains);
  // Returns true if datagrams wait for their device.
  bool blocked() const { return outstanding_ > 0; }
  // Lets UCX work until no datagram waits or `timeout` has passed.
  void drain(Duration timeout);

  std::span<const ucp_ep_h> endpoints() const { return endpoints_; }

 private:
  // A datagram that UCX has not gathered completely.
  struct Slot {
    UcxSender* owner = nullptr;
    SliceCursor start;          // place of the datagram in its train
    bool copied = false;        // the datagram's bytes are in `copy` instead
    std::byte* copy = nullptr;  // room for a datagram
    std::size_t bytes = 0;
    Slot* next_free = nullptr;
    Rank to = kNoRank;
  };
  // Limits on the datagrams that wait, for all peers and for one peer. Credits allow only one
  // window of datagrams in flight to a peer. So a peer for which kSlotsPerPeer wait here has
  // stopped, and further datagrams to it are lost.
  static constexpr std::size_t kSlots = 1024;
  static constexpr std::size_t kSlotsPerPeer = 256;
  // Datagrams of at most this size are sent from a copy in one piece, because UCX then sends them
  // at once, within the descriptor.
  static constexpr std::size_t kSmallBytes = 128;

  // Takes its parameters by value, in registers: see protocol::Receiver::on_data().
  bool send_one(Rank to, SliceCursor start, std::size_t bytes);
  void put_aside(Slot& slot);
  void free_slot(Slot& slot);
  bool room();

  static void* start_pack(void* context, const void* slot, std::size_t count);
  static std::size_t packed_size(void* slot);
  static std::size_t pack(void* argument, std::size_t offset, void* out, std::size_t room);
  static void finish(void* slot);
  static void on_sent(void* request, ucs_status_t status, void* argument);
  static void on_failure(void* argument, ucp_ep_h endpoint, ucs_status_t status);

  UcxReceiver& receiver_;
  TransportCounters& counters_;
  std::size_t datagram_bytes_max_ = 0;
  UcxMark mark_;
  ucp_datatype_t gathered_ = 0;
  // Prepared once. To clear one for every datagram took 5 % of the processor time of a 16 MiB
  // all-reduce.
  ucp_request_param_t contiguous_{};
  ucp_request_param_t gathering_{};
  std::vector<ucp_ep_h> endpoints_;     // by rank
  std::vector<std::uint16_t> waiting_;  // by rank: datagrams outstanding
  std::unique_ptr<std::byte[]> copies_;
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
  std::size_t outstanding_ = 0;
};

}  // namespace leeway::transport
