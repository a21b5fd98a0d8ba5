// Every limit of the library, with its unit and its reason. These limits bound loops over input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway::limits {

// Limit on the ranks of one communicator. Each rank keeps a few hundred bytes of state for each
// peer, and may have a flow to every peer open.
inline constexpr int kPeersMax = 1024;

// Limit on the open operations that one report (the datagram that acknowledges, WIRE 3) lists.
inline constexpr int kOpenRoundsMax = 16;

// Every report keeps this many of its kOpenRoundsMax entries for messages (send/recv). So open
// collectives cannot crowd out a message for which a rank's collectives wait. One entry is for a
// message that was given up, and one each for a receive that was refused, a posted receive and a
// send.
inline constexpr int kMessageEntries = 4;

// Limit on the collectives of one communicator that are open at the same time; further collectives
// queue at the caller's side. Reports list a failed collective until this many later ones were
// opened.
inline constexpr int kOpenCollectivesMax = kOpenRoundsMax - kMessageEntries;

// Any number of messages (send/recv) may be open between two ranks. In each direction, two kinds
// exchange datagrams at a time. The first kind is the oldest kTalkingMessagesMax messages of tag 0,
// and of each of the kTalkingTagsMax tags that have been open longest. The second kind is messages
// that the peer mentions. All other messages wait for their turn and only take memory.
inline constexpr int kTalkingMessagesMax = 16;
inline constexpr std::size_t kTalkingTagsMax = 128;

// At most this many receives from a peer exchange datagrams only because the peer mentioned their
// messages. The peer mentions a message beyond this limit again later.
inline constexpr std::size_t kMentionedReceivesMax = 64;

// Limit on the tags that this rank may use with one peer in the communicator's life. The message
// numbers of each tag take some 250 bytes for all that time.
inline constexpr std::size_t kTagsPerPeerMax = std::size_t{1} << 16;

// A peer's message number of a tag is refused if it is more than this ahead of the receives that
// this rank has opened, or (in a report) of the peer's latest number. A made-up number, if it were
// believed, would end all messages below it.
inline constexpr std::uint32_t kMessagesHeardMax = 1u << 24;

// A peer's collective number is refused if it is ahead of this rank's own by more than this.
// Numbers are compared modulo 2^32. So once a number far ahead were believed, all true numbers
// would seem old.
inline constexpr std::uint32_t kRoundsAheadMax = 1u << 28;

// A sender answers a flow's repair requests in full up to a bound: this number times the flow's
// packets, divided by the share of datagrams that arrive. Where bursts fill a short queue, an exact
// flow needs all these repairs, because three of four packets are lost. Later requests get one
// packet each, so that asking costs a peer as much as answering (WIRE 5.7).
inline constexpr std::uint32_t kRepairsPerPacket = 4;
// In the bound of kRepairsPerPacket, the share of datagrams that arrive counts as at least this,
// whatever the receiver reports.
inline constexpr double kRepairedShareMin = 1.0 / 16;

// At most this many probes of one peer are answered in a round trip. An honest peer sends fewer
// than one probe in that time.
inline constexpr int kProbeAnswersPerRoundTrip = 8;

// Least and largest weight of a contribution, apart from 0. Weights are sent as float32, and
// results are scaled in float32. Sums of a thousand such weights and their reciprocals, scaled by
// an estimator, stay far within the range of float32.
inline constexpr double kWeightMin = 0x1p-64;
inline constexpr double kWeightMax = 0x1p64;

// One report lists the posted receives of at most this many tags. The next report begins with
// another tag.
inline constexpr int kListedStreamsMax = 8;

// A report says for tag 0, and for at most this many other tags of messages between two ranks, how
// many receives are posted. Tags whose receives it lists go first, then tags used last (WIRE 3.12).
inline constexpr int kReportedStreamsMax = 16;

// At most this many sends to a peer complete before the peer has their messages. Such a message is
// small and was copied, so the caller may use its buffer again. The copies take 4 MiB at most.
inline constexpr std::uint32_t kSendsAheadMax = 64;

// A report lists at most kGivenUpMax messages that were given up lately, and kGivenUpReports
// reports list each of them. A receiver that missed all these reports lists its receive again. The
// sender's reports then list the message again.
inline constexpr int kGivenUpMax = 4;
inline constexpr int kGivenUpReports = 4;

// The number of reports that list a receive which failed because its message does not match, so
// that the send fails, too. A later report no longer lists the receive. The sender then takes the
// message for delivered. So the two ranks end differently only if all these reports are lost.
inline constexpr int kRefusedReports = 16;

// Limit on the messages to a peer that are remembered because their type or length did not match
// the peer's receive. The receive may be posted late, and should still hear of the mismatch. About
// older messages it hears only that they were given up.
inline constexpr int kUnmatchedMax = 64;

// Limit on the packets that one rank sends another in one half of one operation. 2^22 packets of
// 1,408 B are 5.9 GB a link.
inline constexpr std::uint32_t kFlowPacketsMax = 1u << 22;

// Number of packets of a chunk, the unit in which complete data are reduced. The packets of a chunk
// have one word in the arrival bitmap.
inline constexpr std::uint32_t kChunkPacketsMax = 64;

// Largest datagram in bytes that is accepted or made, over any transport. Shared memory between the
// ranks of a host carries datagrams of this length; UDP carries shorter ones (kFrameBytesMax).
inline constexpr std::size_t kDatagramBytesMax = std::size_t{32} * 1024;

// Largest datagram in bytes that an option may ask for, and that UDP sends: a jumbo frame. Larger
// ones would be fragmented on every real network.
inline constexpr std::size_t kFrameBytesMax = 9216;

// A path must be able to carry datagrams of this many bytes. Every IPv6 path carries larger ones.
inline constexpr std::size_t kDatagramBytesMin = 512;

// Limit on the lanes of a process for one communicator (Options::lanes). It is more than a host has
// cores to spare.
inline constexpr int kLanesMax = 8;

// Bounds in bits per second on the rate that may be set for CongestionControl::fixed: 10 kbit/s to
// 1 Tbit/s.
inline constexpr std::uint64_t kRateMin = 10'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000'000;

// A peer's grant always allows this many datagrams in flight (WIRE 3.16). They keep reports coming,
// and only a report can raise the grant again.
inline constexpr std::uint32_t kGrantedDatagramsMin = 4;

// kCodePackets: number of packets of a flow that one erasure code covers together (WIRE 2.10).
// kCodeParitiesMax: limit on the parity packets of one code. A code over bytes has 256 places, for
// packets and parity together. In a longer code the share of lost packets varies less, so less
// parity is enough (docs/measurements/protocol.md). 96 parities to 128 packets are enough also if
// every fourth packet is lost.
inline constexpr std::uint32_t kCodePackets = 128;
inline constexpr std::uint32_t kCodeParitiesMax = 96;
// Longest flow that has parity, in packets. For longer flows parity would take longer than repair.
// Owners would also need too much memory, because they keep contributions until the code over these
// is complete.
inline constexpr std::uint32_t kCodedFlowPacketsMax = 8192;
// Flows of up to kEagerPackets packets are sent several times instead (WIRE 2.12). They are sent at
// most kCopiesMax times, and only once if that already makes more than kCopiedPacketsMax packets to
// all ranks together.
inline constexpr std::uint32_t kCopiesMax = 8;
inline constexpr std::uint32_t kCopiedPacketsMax = 64;
// Below this share of lost datagrams a sender sends no parity, and no copies.
inline constexpr double kCodedLossMin = 1e-4;
// The number of copies is chosen so that all copies of some packet are lost in about this share of
// operations. Such packets are repaired.
inline constexpr double kCopiesShortfall = 0.05;

// A sender may send this many packets of a flow before the peer has said that it opened the
// operation.
inline constexpr std::uint32_t kEagerPackets = 4;

// For each peer, this many early datagrams are kept for operations that this rank has not opened
// yet: the eager packets of two operations. Further ones are counted and dropped (exact flows are
// repaired).
inline constexpr std::uint32_t kEarlySlotsPerPeer = 8;

// Limit on the bytes of a rank's Hello at the rendezvous. A longer one is not parsed.
inline constexpr std::size_t kHelloBytesMax = std::size_t{64} * 1024;

// Limit on the bytes of a rank's address in a transport other than UDP. UCX addresses grow with the
// host's devices: 100 B to 1 KiB are usual.
inline constexpr std::size_t kTransportAddressBytesMax = 4096;

// Limit on the transports that one rank offers beside UDP.
inline constexpr int kTransportOffersMax = 4;

// Limit on the bytes of rank 0's answer, the longest value of a rendezvous. Its table of kPeersMax
// ranks takes at most half of them. For every rank the table has an address, the rank's place in
// memory, numbers of 8 bytes, and the public key with the names of the rank's secrets.
inline constexpr std::size_t kWelcomeBytesMax =
    std::size_t{kPeersMax} * 2 * (kTransportAddressBytesMax + 48 + 16 + 64);

// Timer resolution promised to callers: no call outlives its deadline by more than this.
inline constexpr std::int64_t kTickNs = 1'000'000;

// A rank that gets no answer asks again after this time at the latest, unless an answer takes
// longer than that on the path. Without this limit, time-outs that double while a long path's round
// trip is unknown could outlast the deadline.
inline constexpr std::int64_t kBackOffNs = 1'000'000'000;

// If a round trip is longer than expected by more than this, a process may have been paused. The
// measurement is then doubted.
inline constexpr std::int64_t kPauseNs = 100'000'000;

}  // namespace leeway::limits
