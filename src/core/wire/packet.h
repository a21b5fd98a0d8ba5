// The datagram format: header structs, their encoders and their decoders. The byte tables of
// proto/README.md are normative; comments cite its paragraphs as WIRE n.
//
// Decoding is a total function over all byte strings: it returns the decoded datagram, or why it is
// refused. Nothing here allocates, and no length read from the wire is used before it is checked
// against the bytes that are there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/limits.h"
#include "base/packet_index.h"
#include "base/time.h"
#include "leeway/codec.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"
#include "wire/operation_kind.h"

namespace leeway::wire {

inline constexpr std::uint16_t kMagic = 0x574C;  // "LW"
inline constexpr std::uint8_t kVersion = 5;

enum class PacketType : std::uint8_t {
  data = 1,
  report = 2,
  probe = 3,
  end = 4,
  repair = 5,
  goodbye = 6,
  given_up = 7,
  alive = 8,
  size = 9,
  piece = 10
};

// Returns true if a datagram of this type is only a prefix, without a header (WIRE 6.1).
constexpr bool is_bare(PacketType type) {
  return type == PacketType::probe || type == PacketType::goodbye || type == PacketType::given_up ||
         type == PacketType::alive;
}

// WIRE 1: the prefix of every datagram. The checksum is CRC32C over the payload, then over prefix
// and header without the checksum field. The payload comes first, so that a payload that goes to
// many ranks is summed once. If the transport keeps bytes intact, the checksum leaves the payload
// out.
struct Prefix {
  PacketType type = PacketType::data;
  std::uint32_t epoch = 0;  // nonce of this incarnation of the communicator
  Rank source = kNoRank;
  Rank destination = kNoRank;  // data and probes: kEveryRank where they are multicast
  // Number of the datagram on its path, or among its source's multicast datagrams, from 1 (WIRE
  // 1.4, 1.5). In an `alive`: number of the probe that the `alive` answers.
  std::uint32_t sequence = 0;
  bool payload_summed = true;  // data: the checksum covers the payload too
  bool asks = false;           // data: the sender wants a report at once (WIRE 3.14)
};
inline constexpr std::size_t kPrefixBytes = 20;

// The phase of an operation that a flow belongs to. Collectives have a reduce phase (0) and a
// spread phase (1). A message (send/recv) has one phase (2).
enum class FlowKind : std::uint8_t { reduce = 0, spread = 1, point = 2 };
inline constexpr int kFlowKinds = 3;

// WIRE 2: the packet's address in the operation, and all else that the receiver needs to use the
// packet without other packets.
struct DataHeader {
  std::uint32_t round = 0;
  FlowKind kind = FlowKind::reduce;
  Codec codec = Codec::native;
  // 0 = first pass, k = answer to the k-th repair request of this flow
  std::uint16_t attempt = 0;
  // Index in the shard. For a parity, flow_packets plus the number of the parity (WIRE 2.10).
  PacketIndex index;
  // Position in the sender's order of this pass. In a message the header only marks the last
  // packet. The positions of the other packets decode as 0.
  PacketPosition position;
  std::uint32_t flow_packets = 0;  // packets of the flow: n_i of the estimators
  float weight = 1.0f;             // reduce half: c_i
  std::uint32_t tail = 0;          // spread half and messages: elements of the flow's last packet
  std::uint32_t message_tag = 0;   // messages: the caller's tag
  // Collectives below this number are open at the sender, or closed there already.
  std::uint32_t opened_below = 0;
  // The sender needs no more packets of collectives below this number.
  std::uint32_t settled_below = 0;
  std::uint32_t tag_digest = 0;  // digest() of the operation the sender means
  // For a collective: the first pass goes on after this packet, with parity or with another copy.
  bool goes_on = false;

  bool is_parity() const { return index.value >= flow_packets; }
  // WIRE 4.2: returns true if this packet says that the first pass is over, as an END does.
  bool ends_first_pass() const {
    return attempt == 0 && position.value + 1 >= flow_packets && !goes_on;
  }
};
inline constexpr std::size_t kDataHeaderBytes = kPrefixBytes + 36;

// The part of an operation's description that all ranks must agree about. A decoder refuses a byte
// that names no enumerator (WIRE 3.1), so a decoded tag holds only valid enumerators.
struct OperationTag {
  OperationKind operation = OperationKind::all_reduce;
  DataType dtype = DataType::f32;
  ReduceOp reduce_op = ReduceOp::sum;
  Codec codec = Codec::native;
  Codec spread_codec = Codec::native;
  Delivery::Kind delivery = Delivery::Kind::exact;
  Delivery::Kind spread = Delivery::Kind::exact;
  Estimator estimator = Estimator::zero_fill;
  Rank root = kNoRank;
  std::uint16_t codec_settings = 0;  // codec_settings.h
  std::uint16_t spread_settings = 0;
  std::uint64_t count = 0;  // elements, as the operation's documentation defines its size
  // Digest of the block lengths of an uneven operation, never 0; 0 if blocks are even. No rank
  // knows all lengths of an uneven all_to_all, so its shape is kUnevenPairs, or in a report what
  // tell_pair() sets.
  std::uint32_t shape = 0;
  // Number of slices into which the call is cut for lanes, kBySites for a call by sites, or 0 for a
  // call that is not cut.
  std::uint8_t parts = 0;
  bool confirm_use = false;

  friend bool operator==(const OperationTag&, const OperationTag&) = default;
};

// Value of `parts` for a call by sites, whose legs run inside sites and between them.
inline constexpr std::uint8_t kBySites = 15;

// Value of `shape` for an uneven all_to_all.
inline constexpr std::uint32_t kUnevenPairs = 1;

// In a report, the entry of an uneven all_to_all gives the report's receiver two numbers (WIRE
// 3.11). `count` is how many elements the reporter expects from that receiver. `shape` - 2 is how
// many elements the reporter sends to that receiver, at most kPairSendsMax. Shapes 0 and 1 have
// other meanings.
inline constexpr std::uint64_t kPairSendsMax = UINT32_MAX - 2;
constexpr void tell_pair(std::uint64_t sends, std::uint64_t expects, OperationTag& tag) {
  tag.count = expects;
  tag.shape = static_cast<std::uint32_t>(sends < kPairSendsMax ? sends : kPairSendsMax) + 2;
}

// Returns the tag of a message. The caller must still set dtype, codec, settings and count.
constexpr OperationTag tag_of_message(bool sends) {
  return {.operation = sends ? OperationKind::send : OperationKind::recv};
}

// WIRE 2.5: the digest in every data packet. By it ranks that mean different operations find that
// out before anything is summed. A send and its receive have the same digest: it covers type and
// codec, on which both must agree, but not the count, which the sender chooses.
std::uint32_t digest(const OperationTag& tag, bool point_to_point);

// An entry of a report: one operation that is open at the reporter, or a collective that failed
// there. An operation that the report says was opened, and that has no entry, is closed (WIRE 3.4).
struct OpenRound {
  std::uint32_t round = 0;
  bool point_to_point = false;
  bool sending = false;           // (point to point) a message to you; otherwise one from you
  bool reduce_settled = false;    // the reporter needs no more from *you* in this phase
  bool spread_settled = false;    // likewise; (point to point) of the message
  std::uint32_t message_tag = 0;  // (point to point) the caller's tag
  // An entry of a message carries only operation, dtype, codec, codec_settings and count. For a
  // send, count is the message's length; for a receive, the longest message that fits.
  OperationTag tag;
  // For a collective: why it failed at the reporter, or kOk if it is open. For a message to you
  // that the reporter gave up: kDeadlineExceeded after its deadline, or kMismatch (WIRE 3.17).
  StatusCode failure = StatusCode::kOk;
  Rank about = kNoRank;  // rank that the reporter's error names, or kNoRank
  // The rank at which the collective failed first, for the same reason, if that is another rank and
  // the reporter was told of it. Otherwise kNoRank.
  Rank first = kNoRank;
  OperationTag other;  // (mismatch) the operation that rank `about` means

  bool failed() const { return failure != StatusCode::kOk; }
};
inline constexpr std::size_t kOpenRoundBytes = 28;
inline constexpr std::size_t kTagBytes = 23;
inline constexpr std::size_t kFailedRoundBytes = kOpenRoundBytes + 3;
inline constexpr std::size_t kDisputedRoundBytes = kFailedRoundBytes + kTagBytes;
inline constexpr std::size_t kOpenMessageBytes = 21;

// Number of receives that a reporter has posted for messages of one tag from the report's receiver.
struct OpenedStream {
  std::uint32_t tag = 0;  // never 0, as Report::point_opened_below is for tag 0
  std::uint32_t opened_below = 0;
};
inline constexpr std::size_t kOpenedStreamBytes = 8;

// A report says of this many latest collectives whether the reporter used none of your
// contribution. At most limits::kOpenRoundsMax (16) collectives wait to hear it, so all are
// covered.
inline constexpr std::uint32_t kMissedRounds = 24;

// Bits of a time on the reporter's clock, in microseconds. The time wraps after 16.7 s (2^24 us).
// That is long enough, because senders only compare how long datagrams waited in queues.
inline constexpr std::uint32_t kArrivedBits = 24;
constexpr std::uint32_t arrived_us(Instant at) {
  return static_cast<std::uint32_t>(at.ns / 1000) & ((std::uint32_t{1} << kArrivedBits) - 1);
}

// Value of Report::grant if nothing but the window limits the datagrams in flight.
inline constexpr std::uint32_t kNoGrant = UINT32_MAX;

// WIRE 3: reports are cumulative and idempotent. Any report replaces all earlier ones, so the next
// one makes up for a lost one.
struct Report {
  std::uint32_t largest_sequence = 0;  // newest of your datagrams that I saw
  std::uint32_t received = 0;          // how many of your datagrams I accepted (mod 2^32)
  std::uint32_t received_bytes = 0;    // bytes of the received ones (mod 2^32)
  std::uint32_t delay_us = 0;          // time since datagram largest_sequence arrived
  // My clock in microseconds when datagram largest_sequence arrived, < 2^kArrivedBits.
  std::uint32_t arrived_us = 0;
  std::uint32_t ect = 0;           // received ones with ECT(0) or ECT(1) (mod 2^32)
  std::uint32_t ce = 0;            // received ones that a queue marked (mod 2^32)
  std::uint32_t grant = kNoGrant;  // bytes beyond largest_sequence that I have room for
  std::uint16_t host_drops = 0;    // your datagrams that found my socket full (mod 2^16)
  std::uint32_t opened_below = 0;
  std::uint32_t point_opened_below = 0;  // receives I posted from you, of tag 0
  std::uint32_t group_largest = 0;       // newest of your multicast datagrams that I saw, or 0
  std::uint32_t open_count = 0;          // <= open.size()
  bool heard_goodbye = false;            // your good-bye has arrived
  std::uint32_t missed = 0;              // < 2^kMissedRounds, WIRE 3.9: see missed_round()
  std::array<OpenRound, limits::kOpenRoundsMax> open;
  std::uint32_t stream_count = 0;  // <= limits::kReportedStreamsMax
  std::array<OpenedStream, limits::kReportedStreamsMax> streams;

  // The entries of `open` and of `streams` that are in use.
  std::span<OpenRound> entries() { return std::span(open).first(open_count); }
  std::span<const OpenRound> entries() const { return std::span(open).first(open_count); }
  std::span<OpenedStream> opened_streams() { return std::span(streams).first(stream_count); }
  std::span<const OpenedStream> opened_streams() const {
    return std::span(streams).first(stream_count);
  }

  // Returns how many receives the reporter has posted for your messages of a tag, or nullopt if the
  // report does not say.
  std::optional<std::uint32_t> messages_opened_below(std::uint32_t tag) const {
    if (tag == 0) return point_opened_below;
    for (const OpenedStream& stream : opened_streams()) {
      if (stream.tag == tag) return stream.opened_below;
    }
    return std::nullopt;
  }

  // Returns true if the reporter settled collective `number` without any packet of yours, so that
  // none can be in the result. Returns false also for rounds that are too old for `missed`.
  bool missed_round(std::uint32_t number) const {
    const std::uint32_t ago = opened_below - 1 - number;
    return ago < kMissedRounds && (missed >> ago & 1) != 0;
  }
};
inline constexpr std::size_t kReportFixedBytes = kPrefixBytes + 36;
// Bytes of `ect` and `ce`, which are sent unless both are 0.
inline constexpr std::size_t kReportMarksBytes = 8;
// Bytes of `grant` and `host_drops`, which are sent unless they are kNoGrant and 0.
inline constexpr std::size_t kReportHostBytes = 6;
// Return the length in bytes of a report's whole datagram, and of one entry.
std::size_t report_bytes(const Report& report);
std::size_t entry_bytes(const OpenRound& round);

// WIRE 4: the sender has finished pass `attempt` of this flow.
struct End {
  std::uint32_t round = 0;
  FlowKind kind = FlowKind::reduce;
  std::uint16_t attempt = 0;
  std::uint32_t flow_packets = 0;
  float weight = 1.0f;            // reduce half
  std::uint32_t tail = 0;         // spread half and messages: as in DataHeader
  std::uint32_t message_tag = 0;  // messages
  std::uint32_t tag_digest = 0;   // collectives: as in DataHeader
};
inline constexpr std::size_t kEndBytes = kPrefixBytes + 20;

// WIRE 5: asks for packet base + i again for every bit i that is set in `words` words of 64 bits,
// which follow the header in little-endian order.
struct Repair {
  std::uint32_t round = 0;
  FlowKind kind = FlowKind::reduce;
  std::uint16_t attempt = 0;  // number of this request, from 1; answers carry it
  std::uint32_t base = 0;     // multiple of 64
  std::uint32_t words = 0;
  bool last = true;               // no further datagram belongs to this request
  std::uint32_t message_tag = 0;  // messages
};
inline constexpr std::size_t kRepairFixedBytes = kPrefixBytes + 20;

// WIRE 10.2: a datagram that tests whether its own length passes, or the answer to it. The prefix's
// `sequence` numbers the probes of the sender, not the datagrams of the path.
struct Size {
  // WIRE 10.4: by `mine` and `yours`, ranks agree on the length of a communicator's datagrams.
  enum class Role : std::uint8_t { probe = 0, answer = 1, mine = 2, yours = 3 };
  Role role = Role::probe;
  // probe, answer: length of the probe. mine, yours: the longest datagram that all of the sender's
  // paths carry, 0 if unknown.
  std::uint16_t bytes = 0;
};
inline constexpr std::size_t kSizeBytes = kPrefixBytes + 4;

// WIRE 10.6: a part of a datagram that is too long for its path. The piece has the prefix of the
// whole datagram, with another type and checksum.
struct Piece {
  std::uint16_t whole = 0;   // bytes of the datagram
  std::uint16_t offset = 0;  // place of the content in the datagram; multiple of its length
};
inline constexpr std::size_t kPieceHeaderBytes = kPrefixBytes + 4;
inline constexpr std::size_t kPiecesMax = 64;

// Reasons to refuse a datagram. Refused datagrams are counted by reason and not answered.
enum class Refusal : std::uint8_t {
  none = 0,
  truncated,
  oversized,
  magic,
  version,
  checksum,
  type,
  epoch,
  misrouted,
  field
};
inline constexpr int kRefusals = 10;
// Names of the refusals in metrics and counters, indexed by Refusal.
inline constexpr std::array<const char*, kRefusals> kRefusalNames = {
    "",         "truncated", "oversized", "magic",     "version",
    "checksum", "type",      "epoch",     "misrouted", "field"};

struct Expectation {
  std::uint32_t epoch = 0;
  Rank self = 0;
  int size = 0;
};

// Returns the epoch in the prefix, which names a communicator, or nullopt if the datagram is too
// short. Verifies nothing else.
std::optional<std::uint32_t> epoch_of(ByteSpan datagram);

// Returns true if a datagram is for the receiving process as a whole and not for one communicator:
// a size or a piece (WIRE 10). Verifies nothing else.
bool is_for_process(ByteSpan datagram);

// Reads the prefix and verifies magic, version, type and length, but neither checksum nor routing.
// Observers use it to learn what a datagram claims to be.
Refusal peek_prefix(ByteSpan datagram, Prefix& out);

// Reads the prefix and verifies magic, version, checksum and lengths; with `expect`, also epoch,
// source and destination.
Refusal decode_prefix(ByteSpan datagram, const Expectation* expect, Prefix& out);

// The decoders by type follow; call them after decode_prefix() accepted the datagram. `payload`
// aliases the datagram.
Refusal decode_data(ByteSpan datagram, DataHeader& out, ByteSpan& payload);
Refusal decode_report(ByteSpan datagram, Report& out);
Refusal decode_end(ByteSpan datagram, End& out);
// `words` aliases the datagram (unaligned, little-endian).
Refusal decode_repair(ByteSpan datagram, Repair& out, ByteSpan& words);
Refusal decode_size(ByteSpan datagram, Size& out);
// `content` aliases the datagram. All pieces of one datagram have content of the same length; the
// last piece may end in padding.
Refusal decode_piece(ByteSpan datagram, Piece& out, ByteSpan& content);

// An encoder writes a datagram with its checksum and returns the number of bytes written.
// encode_data() does not write the payload. `out` must have room: report_bytes() or a constant
// above says how much. `payload_crc` is used only if prefix.payload_summed is set.
std::size_t encode_data(const Prefix&, const DataHeader&, std::uint32_t payload_crc,
                        MutableByteSpan out);
std::size_t encode_report(const Prefix&, const Report&, MutableByteSpan out);
std::size_t encode_end(const Prefix&, const End&, MutableByteSpan out);
std::size_t encode_repair(const Prefix&, const Repair&, std::span<const std::uint64_t> words,
                          MutableByteSpan out);
// A probe is padded with zeros to size.bytes, for which `out` must have room.
std::size_t encode_size(const Prefix&, const Size&, MutableByteSpan out);
// `out` is the whole piece: room for the header, then the content, which must be there already.
void encode_piece(const Prefix&, const Piece&, MutableByteSpan out);
std::size_t encode_bare(const Prefix&, MutableByteSpan out);  // is_bare(prefix.type)

}  // namespace leeway::wire
