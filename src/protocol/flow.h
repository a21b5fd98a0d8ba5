// One directed stream of packets between two ranks within one phase of one operation: both of its
// ends.
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

// The sender's end: a first pass over all packets in permuted order, then answers to repair
// requests.
struct SendFlow {
  std::uint32_t packets = 0;  // 0: nothing to send in this phase
  schedule::PacketGrid grid;
  schedule::PacketCursor cursor;
  float weight = 1.0f;  // c of our contribution to this receiver
  // The first pass runs in the phase's GroupPass; `cursor` takes over where it leaves
  bool grouped = false;
  bool settled = false;  // the receiver wants no more (or nothing was to be sent)
  // A report told, after the receiver settled it, whether it used any of this:
  bool informed = false;
  bool missed = false;     // it used nothing. False while not informed
  bool end_due = false;    // an END waits to be sent
  std::uint16_t pass = 0;  // pass being sent, or last sent: 0 first, k = answer to request k
  bool pass_over = false;  // everything of `pass` has been handed out
  // The first pass of a short flow is so many copies of it (WIRE 2.12), of which some are over;
  // decided when its first packet is sent.
  std::uint32_t copies = 1;
  std::uint32_t copies_over = 0;
  // The first pass ends with so much parity (WIRE 2.10); decided when its last packet is sent.
  std::uint32_t parities = 0;
  std::uint32_t parities_sent = 0;
  // Repeat the END unless settled by then; before it, see ask_gated()
  Instant end_at = Instant::infinite_future();
  std::uint32_t end_tries = 0;
  // Packets of the first pass that have left: no others are sent again before it is over. Without
  // bits: none is.
  Bitmap left;
  std::uint16_t aside = 0;  // request that is answered within the first pass
  Bitmap wanted;            // packets asked for again
  std::uint32_t wanted_count = 0;
  std::uint32_t wanted_from = 0;   // scan position in `wanted`
  std::uint32_t wanted_base = 0;   // request datagrams below this word were merged already
  PacketPosition repair_position;  // of the packet that is next in this repair pass
  std::uint64_t repairs = 0;       // packets sent again
  std::uint64_t sent = 0;

  bool open() const { return packets != 0 && !settled; }
  bool first_pass() const { return pass == 0; }
  // All of the first pass has been handed out.
  bool passed() const {
    return cursor.exhausted() && copies_over + 1 == copies && parities_sent == parities;
  }
  // Packets asked for again go before the rest of the first pass.
  bool repairs_aside() const { return first_pass() && wanted_count > 0; }
  // Packets that have left once.
  std::uint32_t begun() const { return copies_over > 0 ? packets : cursor.position().value; }

  // Merges what the receiver asks for again into `wanted`. Taken: a pass over it is due.
  enum class Request : std::uint8_t { taken, ignored, refused };
  Request take_request(const wire::Repair& repair, ByteSpan words);
  // The next packet of it; nothing: all have been handed out. From limits::kRepairsPerPacket times
  // the flow on, over the share `delivered` of datagrams that arrive, one packet a request (WIRE
  // 5.7).
  std::optional<PacketIndex> next_repair(double delivered);
};

// A first pass whose packets are the same for all its members, and go out once for all of them
// (multicast).
struct GroupPass {
  std::uint32_t members = 0;    // flows that it serves (SendFlow::grouped); 0: there is none
  Rank first_member = kNoRank;  // stands for all where a flow is asked about
  schedule::PacketCursor cursor;
  Instant blocked_since = Instant::infinite_future();  // a member holds the others up

  bool open() const { return members != 0; }
};

// The receiver's end: the ledger. Test-and-set of `arrived` decides what is summed, and never
// twice.
struct ReceiveFlow {
  std::uint32_t packets = 0;  // 0: nothing to receive in this phase
  std::uint32_t tail = 0;     // elements of its last packet
  // False: a message of which nothing came. `packets` is the most that the receive has room for.
  bool sized = true;
  Bitmap arrived;
  std::uint32_t arrived_count = 0;
  std::uint32_t repaired = 0;  // came on a later pass, or were computed from parity
  std::uint32_t duplicate = 0;
  std::uint32_t late = 0;
  // c_i; unknown until something of the sender came
  float weight = std::numeric_limits<float>::quiet_NaN();
  bool finished = false;             // complete, or given up by the delivery class
  bool abandoned = false;            // the sender has left the operation: nothing more will come
  Rank cut_by = kNoRank;             // the rank whose deadline made the sender leave
  std::int32_t ended_pass = -1;      // last pass known to be over
  std::uint16_t requested_pass = 0;  // repair requests made
  std::uint16_t early_pass = 0;      // the last of them before the first pass was over
  bool request_due = false;          // a repair request waits to be sent
  std::uint32_t request_word = 0;    // where the next datagram of the request starts
  std::uint32_t request_end = 0;     // the word behind the request
  std::uint32_t tries = 0;           // consecutive unanswered askings, for back-off
  std::uint32_t fruitless = 0;       // repair requests in a row of which nothing came
  Instant ask_at{0};                 // when the last asking was made
  Instant last_arrival{0};
  const Bitmap* required = nullptr;
  // Null: neither parity nor repair within the first pass is expected.
  std::unique_ptr<ParityLedger> parity;
  std::unique_ptr<ChunkWatch> chunks;
  Bitmap early;  // what the early request that is due asks for

  bool complete() const { return arrived_count == packets; }
  bool open() const { return packets != 0 && !finished; }
  std::uint32_t missing() const { return packets - arrived_count; }
  // Packets are missing, and none of those that came belongs to the first pass.
  bool first_pass_lost() const { return !complete() && arrived_count == repaired; }
  // Any packet that must come and has not.
  bool required_missing() const;
  // Whether the delivery class asks for more than has arrived. `fetch_empty`: also for a flow whose
  // first pass was lost whole.
  bool needs_more(Delivery::Kind delivery, double loss_max, bool fetch_empty) const;
  // The last pass whose end is awaited: answers to early requests are part of the first.
  std::uint16_t awaited_pass() const { return requested_pass > early_pass ? requested_pass : 0; }
  // A request for all that is missing becomes due.
  void ask_for_all();
  // Before the first pass is over: a request for what is missing of `left` becomes due. False:
  // nothing is missing of it.
  bool ask_early(const ChunkWatch::Left& left);
  // The next datagram of the request that is due: words of missing packets, all or only required
  // ones, but for those that parity covers. Returns how many words; 0: nothing is wanted any more.
  std::size_t next_request(bool all, std::span<std::uint64_t> words, wire::Repair& repair);
};

}  // namespace leeway::protocol
