// A queue pair without a device. It records what is posted, and the test decides which completions
// come.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <vector>

#include "transport/verbs/peers.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {

class FakeVerbs {
 public:
  // A datagram as the device would read it when it is posted.
  struct Sent {
    Bytes bytes;
    std::vector<ibv_sge> pieces;
    std::uint64_t number = 0;
    unsigned flags = 0;
    ibv_ah* route = nullptr;
    std::uint32_t queue_pair = 0;
    std::uint32_t queue_key = 0;
  };

  FakeVerbs() {
    context_.ops.post_send = [](ibv_qp* queue, ibv_send_wr* request, ibv_send_wr** refused) {
      return of(queue->qp_context).post_send(request, refused);
    };
    context_.ops.post_recv = [](ibv_qp* queue, ibv_recv_wr* request, ibv_recv_wr** refused) {
      return of(queue->qp_context).post_receive(request, refused);
    };
    context_.ops.poll_cq = [](ibv_cq* queue, int most, ibv_wc* out) {
      return of(queue->cq_context).poll(most, out);
    };
    queue_pair.context = &context_;
    queue_pair.qp_context = this;
    completions.context = &context_;
    completions.cq_context = this;
  }
  FakeVerbs(const FakeVerbs&) = delete;

  // Completes the datagrams posted up to `number`, if they requested completions.
  void complete(std::uint64_t number, ibv_wc_status status = IBV_WC_SUCCESS) {
    for (const Sent& datagram : sent) {
      if (datagram.number <= completed_ || datagram.number > number) continue;
      if ((datagram.flags & IBV_SEND_SIGNALED) == 0 && status == IBV_WC_SUCCESS) continue;
      done.push_back({.wr_id = datagram.number, .status = status});
    }
    completed_ = std::max(completed_, number);
  }

  ibv_qp queue_pair{};
  ibv_cq completions{};
  std::deque<ibv_wc> done;
  std::vector<Sent> sent;
  std::vector<std::uint64_t> posted_slots;  // posted receives, in order
  std::vector<ibv_sge> slots;               // by request
  int send_posts = 0;
  int receive_posts = 0;
  bool broken = false;  // refuses everything that is posted
  bool deaf = false;    // returns an error in place of completions

 private:
  static FakeVerbs& of(void* self) { return *static_cast<FakeVerbs*>(self); }

  int post_send(const ibv_send_wr* request, ibv_send_wr** refused) {
    ++send_posts;
    *refused = const_cast<ibv_send_wr*>(request);
    if (broken) return EIO;
    for (; request != nullptr; request = request->next) {
      Sent datagram{{}, {request->sg_list, request->sg_list + request->num_sge}};
      for (const ibv_sge& piece : datagram.pieces) {
        const auto* data = reinterpret_cast<const std::byte*>(piece.addr);
        datagram.bytes.insert(datagram.bytes.end(), data, data + piece.length);
      }
      datagram.number = request->wr_id;
      datagram.flags = request->send_flags;
      datagram.route = request->wr.ud.ah;
      datagram.queue_pair = request->wr.ud.remote_qpn;
      datagram.queue_key = request->wr.ud.remote_qkey;
      sent.push_back(std::move(datagram));
    }
    return 0;
  }
  int post_receive(const ibv_recv_wr* request, ibv_recv_wr** refused) {
    ++receive_posts;
    *refused = const_cast<ibv_recv_wr*>(request);
    if (broken) return EIO;
    for (; request != nullptr; request = request->next) {
      posted_slots.push_back(request->wr_id);
      slots.resize(std::max<std::size_t>(slots.size(), request->wr_id + 1));
      slots[request->wr_id] = *request->sg_list;
    }
    return 0;
  }
  int poll(int most, ibv_wc* out) {
    if (deaf) return -1;
    int count = 0;
    for (; count < most && !done.empty(); ++count) {
      out[count] = done.front();
      done.pop_front();
    }
    return count;
  }

  ibv_context context_{};
  std::uint64_t completed_ = 0;
};

// Returns the Ethernet address of 10.0.0.`host`, queue pair `queue_pair`.
inline VerbsAddress roce_address(unsigned host, std::uint32_t queue_pair = 100) {
  const asio::ip::address_v4 v4(0x0A000000u + host);
  return {LinkLayer::ethernet, 0, queue_pair, 0x01234567, gid_of(v4)};
}

// Makes the header that a device writes before a datagram from an IPv4 address.
inline Bytes ipv4_header(unsigned host) {
  Bytes header(kNetworkHeaderBytes);
  header[20] = std::byte{0x45};
  const std::uint8_t source[] = {10, 0, 0, static_cast<std::uint8_t>(host)};
  std::memcpy(&header[32], source, sizeof(source));
  return header;
}

}  // namespace leeway::transport
