// Receives active messages and lends them to the caller where UCX put them.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/ucx/message.h"

namespace leeway::transport {

class UcxReceiver {
 public:
  // The receiver adds what it receives and drops to `counters`.
  explicit UcxReceiver(TransportCounters& counters) : counters_(counters), held_(kHeldMax) {}
  UcxReceiver(const UcxReceiver&) = delete;
  UcxReceiver& operator=(const UcxReceiver&) = delete;

  // Receives the messages of `worker` from now on.
  Status open(ucp_worker_h worker, std::size_t datagram_bytes_max);
  // From now on accepts only messages with this `group` from ranks below `size`.
  void expect(std::uint64_t group, std::size_t size) {
    group_ = group;
    size_ = size;
  }

  std::size_t receive(std::span<Received> out);
  // Gives all messages back to UCX. Call it before the worker is destroyed.
  void close();
  // Returns true if something arrived that receive() has not given out.
  bool pending() const { return arrived_ != lent_; }
  // Lets UCX work once (ucp_worker_progress()), unless kHeldEnough messages are held already.
  // Returns true if UCX did anything.
  bool progress();

 private:
  struct Held {
    std::byte* data;
    std::uint32_t bytes;
    Rank from;
  };
  // Limit on the messages held. progress() does nothing while half as many (kHeldEnough) are held.
  // The other half is for messages that arrive while send() lets UCX work, at most a few dozen each
  // time.
  static constexpr std::size_t kHeldMax = 4096;
  static constexpr std::size_t kHeldEnough = kHeldMax / 2;

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* param);
  ucs_status_t take(const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                    std::uint64_t attributes);
  void release();
  Held& at(std::uint64_t index) { return held_[index % kHeldMax]; }

  TransportCounters& counters_;
  std::size_t datagram_bytes_max_ = 0;
  ucp_worker_h worker_ = nullptr;
  std::uint64_t group_ = 0;
  std::size_t size_ = 0;
  std::vector<Held> held_;
  // Numbers of messages that were ever given back to UCX, lent to the caller, and received.
  std::uint64_t released_ = 0;
  std::uint64_t lent_ = 0;
  std::uint64_t arrived_ = 0;
};

}  // namespace leeway::transport
