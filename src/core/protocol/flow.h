// Both ends of one directed stream of packets between two ranks, within one phase of one operation.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "base/bitmap.h"
#include "base/time.h"
#include "leeway/options.h"
#include "protocol/chunk_watch.h"
#include "protocol/parity_ledger.h"
#include "protocol/round_client.h"
#include "schedule/packet_cursor.h"

namespace leeway::protocol {

// Sender's end: a first pass over all packets in permuted order, then answers to repair requests.
struct SendFlow {
  std::uint32_t packets = 0;  // 0 if there is nothing to send in this phase
  schedule::PacketGrid grid;
  schedule::PacketCursor cursor;
  float weight = 1.0f;  // weight of our contribution to this receiver, for estimators
  // If true, the phase's GroupPass multicasts the packets of the first pass. A flow leaves the
  // GroupPass when all packets are out, when the flow settles, or when its receiver holds the other
  // receivers up. `cursor` then starts at the position that the GroupPass has reached.
  bool grouped = false;
  // If true, the receiver wants no more packets, or had left when the flow was set up.
  bool settled = false;
  // If true, a report has told whether the receiver, which has settled this flow, used any packet
  // of it. Also true if the receiver has left the operation, so that no report will tell.
  bool informed = false;
  // If true, a report has told that the receiver used no packet.
  bool missed = false;
  bool end_due = false;    // if true, an END waits to be sent
  std::uint16_t pass = 0;  // pass being sent, or last sent: 0 first, k = answer to request k
  bool pass_over = false;  // if true, all packets of `pass` have been handed out
  // Number of times that the first pass sends a short flow (WIRE 2.12), decided when its first
  // packet is sent. `copies_over` of these copies have left completely.
  std::uint32_t copies = 1;
  std::uint32_t copies_over = 0;
  // Number of parities at the end of the first pass (WIRE 2.10), decided when its last packet is
  // sent.
  std::uint32_t parities = 0;
  std::uint32_t parities_sent = 0;
  // When to repeat the END unless the flow is settled by then. Before the first END: when to probe
  // a peer that has not opened the operation (Sender::ask_gated()).
  Instant end_at = Instant::infinite_future();
  std::uint32_t end_tries = 0;
  // Packets of the first pass that have left. Until the first pass is over, only these are sent
  // again. If the bitmap has size 0, no packet is sent again before the first pass is over.
  Bitmap left;
  std::uint16_t aside = 0;  // request that is answered within the first pass
  Bitmap wanted;            // packets asked for again
  std::uint32_t wanted_count = 0;
  std::uint32_t wanted_from = 0;   // scan position in `wanted`
  std::uint32_t wanted_base = 0;   // words of the request below this one were merged already
  PacketPosition repair_position;  // position of the next packet in this repair pass
  std::uint64_t repairs = 0;       // packets sent again
  std::uint64_t sent = 0;

  bool open() const { return packets != 0 && !settled; }
  bool first_pass() const { return pass == 0; }
  // Returns true if all of the first pass has been handed out.
  bool passed() const {
    return cursor.exhausted() && copies_over + 1 == copies && parities_sent == parities;
  }
  // Returns true if packets are to be sent again before the rest of the first pass.
  bool repairs_aside() const { return first_pass() && wanted_count > 0; }
  // Number of packets that have left at least once.
  std::uint32_t begun() const { return copies_over > 0 ? packets : cursor.position().value; }

  // Adds the packets of a repair request to `wanted`. Returns `taken` if they are to be sent again,
  // `ignored` for a request that is old or a copy, and `refused` if the flow has no such packets.
  enum class Request : std::uint8_t { taken, ignored, refused };
  Request take_request(const wire::Repair& repair, ByteSpan words);
  // Returns the next packet of `wanted`, or nullopt if all have been handed out. `delivered` is the
  // share of datagrams that arrive. After limits::kRepairsPerPacket * packets / delivered repairs,
  // each request gets only one packet (WIRE 5.7).
  std::optional<PacketIndex> next_repair(double delivered);
};

// Multicast first pass: its packets are the same for all its members, and go out once for all of
// them.
struct GroupPass {
  // Number of flows that the pass serves (SendFlow::grouped); 0 if there is no such pass.
  std::uint32_t members = 0;
  Rank first_member = kNoRank;  // its SendFlow stands for those of all members
  schedule::PacketCursor cursor;
  Instant blocked_since = Instant::infinite_future();  // since when a member holds the others up

  bool open() const { return members != 0; }
};

// Receiver's end: the ledger. Test-and-set of `arrived` decides which packets are summed, so none
// is summed twice.
struct ReceiveFlow {
  // WIRE 5.8: after this many repair requests in a row without an answer, further ones back off. If
  // half of the packets are lost, the answers to eight requests for one packet are all lost once in
  // 256 (2^8) times.
  static constexpr std::uint32_t kFruitlessMost = 8;

  std::uint32_t packets = 0;  // 0 if there is nothing to receive in this phase
  std::uint32_t tail = 0;     // elements of its last packet
  // If true, the flow's length is known. A receive of a message learns the length from the first
  // datagram. Before that, `packets` is the largest number for which the receive has room.
  bool sized = true;
  Bitmap arrived;
  std::uint32_t arrived_count = 0;
  std::uint32_t repaired = 0;  // came on a later pass, or were computed from parity
  std::uint32_t duplicate = 0;
  std::uint32_t late = 0;
  // Weight c_i of the contribution; NaN until a datagram came.
  float weight = std::numeric_limits<float>::quiet_NaN();
  bool finished = false;             // if true: complete, or given up by the delivery class
  bool abandoned = false;            // if true, the sender has left, and no more will come
  Rank cut_by = kNoRank;             // the rank whose deadline made the sender leave
  std::int32_t ended_pass = -1;      // last pass known to be over
  std::uint16_t requested_pass = 0;  // repair requests made
  // Number of the latest request that was made before the first pass was over.
  std::uint16_t early_pass = 0;
  bool request_due = false;        // if true, a repair request waits to be sent
  std::uint32_t request_word = 0;  // first word of the request's next datagram
  std::uint32_t request_end = 0;   // end of the words that the request covers
  // How often in a row a report or a request asked for packets and none came; it sets the back-off.
  std::uint32_t tries = 0;
  std::uint32_t fruitless = 0;  // consecutive repair requests that brought no packet
  Instant ask_at{0};            // when the latest request was made
  Instant last_arrival{0};
  const Bitmap* required = nullptr;  // packets that must come; null if there are none
  // `parity` and `chunks` are set only if the flow may end with parity (may_be_coded()).
  std::unique_ptr<ParityLedger> parity;
  std::unique_ptr<ChunkWatch> chunks;
  Bitmap early;  // packets that the due early request asks for

  bool complete() const { return arrived_count == packets; }
  bool open() const { return packets != 0 && !finished; }
  std::uint32_t missing() const { return packets - arrived_count; }
  // Returns true if packets are missing, and none of those that came belongs to the first pass.
  bool first_pass_lost() const { return !complete() && arrived_count == repaired; }
  // Returns true if a required packet is missing (RoundClient::required()).
  bool required_missing() const;
  // Returns true if the delivery class asks for more packets than have arrived. With `fetch_empty`,
  // returns true also for a best-effort flow whose first pass was lost whole.
  bool needs_more(Delivery::Kind delivery, double loss_max, bool fetch_empty) const;
  // Returns the number of the pass whose END is awaited. Answers to early requests are part of the
  // first pass, which has number 0.
  std::uint16_t awaited_pass() const { return requested_pass > early_pass ? requested_pass : 0; }
  // Makes a request for all missing packets due.
  void ask_for_all();
  // Makes a request for the missing packets of `left` due, before the first pass is over. Returns
  // false if none of them is missing.
  bool ask_early(const ChunkWatch::Left& left);
  // Writes the next datagram of the due request to `words` and `repair`: words of the bitmap of
  // missing packets, without packets that parity covers. If `all` is false, only required packets
  // are asked for. Returns the number of words, 0 if no packet is wanted any more.
  std::size_t next_request(bool all, std::span<std::uint64_t> words, wire::Repair& repair);
};

}  // namespace leeway::protocol
