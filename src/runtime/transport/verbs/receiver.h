// The receiving half of the verbs transport: a ring of posted slots, one datagram each.
//
// A slot holds a datagram behind its network header, which the device writes. A datagram that
// receive() hands out stays in its slot until the next receive(), which posts the slot again.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/verbs/peers.h"

namespace leeway::transport {

class VerbsReceiver {
 public:
  struct Setup {
    ibv_qp* queue_pair = nullptr;
    ibv_cq* completions = nullptr;
    std::size_t entries = 0;
    std::size_t mtu_bytes = 0;       // no datagram of the fabric is larger
    std::size_t datagram_bytes = 0;  // larger ones are dropped and counted
    std::byte* slots = nullptr;      // registered: entries times slot_bytes(mtu_bytes)
    std::uint32_t slots_key = 0;
  };
  static std::size_t slot_bytes(std::size_t mtu_bytes);

  // Counts its work in `counters`.
  VerbsReceiver(const Setup& setup, const VerbsPeers& peers, TransportCounters& counters);

  // Posts every slot. Returns 0 or an errno. Call it before the first receive().
  int start();

  // The same as DatagramTransport::receive().
  std::size_t receive(std::span<Received> out);

  // Checks for arrivals. Returns true if there are some that receive() has not handed out.
  bool pending();

  // Returns why the queue pair cannot be used any more, or nullptr while it can.
  const char* failure() const { return failure_; }
  void abandon() { abandoned_ = true; }

 private:
  void post_again();
  bool fetch();
  std::size_t hand_out(std::span<Received> out);
  bool admit(const ibv_wc& completion, Received& out);
  std::byte* slot(std::uint64_t index) const { return slots_ + index * slot_bytes_; }

  ibv_qp* queue_pair_;
  ibv_cq* completions_;
  const std::size_t entries_;
  const std::size_t datagram_bytes_;
  const std::size_t slot_bytes_;
  std::byte* const slots_;
  const VerbsPeers& peers_;

  std::vector<ibv_recv_wr> requests_;  // one request for each slot, laid out once
  std::vector<ibv_sge> pieces_;
  std::vector<std::uint32_t> used_;  // slots whose datagrams were handed out or refused
  std::size_t used_count_ = 0;

  std::vector<ibv_wc> arrived_;
  std::size_t current_ = 0;
  std::size_t arrived_count_ = 0;
  bool abandoned_ = false;
  const char* failure_ = nullptr;

  TransportCounters& counters_;
};

}  // namespace leeway::transport
