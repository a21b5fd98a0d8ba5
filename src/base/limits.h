// Every limit of the library, with its unit and its reason. These limits bound loops over input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway::limits {

// Most ranks of one communicator. Each rank keeps a few hundred bytes of state for each peer, and
// may have a flow to every peer open.
inline constexpr int kPeersMax = 1024;

// Most open operations that a report lists on the wire. As many recent failures are kept.
inline constexpr int kOpenRoundsMax = 16;

// Most collectives of one communicator that are open at the same time; further ones queue at the
// caller's side. Every report keeps two entries free for a receive and a send, because collectives
// may wait for these messages.
inline constexpr int kOpenCollectivesMax = kOpenRoundsMax - 2;

// Messages (send/recv) may be open in any number. For each tag and direction between two ranks,
// only this many of the oldest ones exchange datagrams at a time. The others wait for their turn
// and only take memory.
inline constexpr int kTalkingMessagesMax = 16;

// Most tags that this rank may use with one peer in the communicator's life. The message numbers of
// each tag take some 250 bytes for all that time.
inline constexpr std::size_t kTagsPerPeerMax = std::size_t{1} << 16;

// How far a peer's message number of a tag may be ahead of this rank's own, or it is not believed.
inline constexpr std::uint32_t kMessagesHeardMax = 1u << 24;

// A peer's collective number may be ahead of this rank's own by this much, or it is not believed.
// Numbers are compared modulo 2^32, so after a number far ahead all true ones would seem old.
inline constexpr std::uint32_t kRoundsAheadMax = 1u << 28;

// A sender answers a flow's repair requests in full until it has repaired this many times the
// flow's packets, divided by the share of datagrams that arrive. Where bursts fill a short queue,
// an exact flow needs all these repairs, because three of four packets are lost. Later requests get
// one packet each, so that asking costs a peer as much as answering (WIRE 5.7).
inline constexpr std::uint32_t kRepairsPerPacket = 4;
// Least share of datagrams that arrive in this bound, whatever the receiver reports.
inline constexpr double kRepairedShareMin = 1.0 / 16;

// Most probes of one peer that are answered in a round trip. Honest peers send fewer than one.
inline constexpr int kProbeAnswersPerRoundTrip = 8;

// Least and largest weight of a contribution, apart from 0. Weights travel and results are scaled
// in float32. Sums of a thousand such weights and their reciprocals, scaled by an estimator, stay
// far within the range of float32.
inline constexpr double kWeightMin = 0x1p-64;
inline constexpr double kWeightMax = 0x1p64;

// Most tags whose posted receives one report lists. The next report begins with another tag.
inline constexpr int kListedStreamsMax = 8;

// Most tags of messages between two ranks for which a report says how many receives are posted:
// first those that it lists, then those used last (WIRE 3.12).
inline constexpr int kReportedStreamsMax = 16;

// Most sends to a peer that may be done before the peer has the messages, because these were
// copied. Copies of small messages take 4 MiB at most.
inline constexpr std::uint32_t kSendsAheadMax = 64;

// Messages given up lately that a report lists, and the number of reports that list each of them.
// If a receiver missed all of them, it lists its receive again, and is told again.
inline constexpr int kGivenUpMax = 4;
inline constexpr int kGivenUpReports = 4;

// Most messages to a peer that are remembered, for a receive posted later, because their type or
// length did not match the receive. Of older ones the receiver hears only that they were given up.
inline constexpr int kUnmatchedMax = 16;

// Most packets that one rank sends another in one half of one operation. 2^22 packets of 1,408 B
// are 5.9 GB a link.
inline constexpr std::uint32_t kFlowPacketsMax = 1u << 22;

// Packets of a chunk, the unit in which complete data are reduced: one word of the arrival bitmap.
inline constexpr std::uint32_t kChunkPacketsMax = 64;

// Largest datagram accepted or made, over any transport. Shared memory between the ranks of a host
// carries it in one piece.
inline constexpr std::size_t kDatagramBytesMax = std::size_t{32} * 1024;

// Largest datagram that an option may ask for, and that UDP sends: a jumbo frame. Larger ones would
// be fragmented on every real network.
inline constexpr std::size_t kFrameBytesMax = 9216;

// Smallest datagram that a path must be able to carry. Every IPv6 path carries more.
inline constexpr std::size_t kDatagramBytesMin = 512;

// Lanes of a process for one communicator (Options::lanes): more than a host has cores to spare.
inline constexpr int kLanesMax = 8;

// Bits per second that CongestionControl::fixed may be asked for: 10 kbit/s to 1 Tbit/s.
inline constexpr std::uint64_t kRateMin = 10'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000'000;

// Datagrams in flight that a peer's grant always allows (WIRE 3.16). They keep reports coming, and
// only a report can raise the grant again.
inline constexpr std::uint32_t kGrantedDatagramsMin = 4;

// kCodePackets: packets of a flow that one erasure code covers together (WIRE 2.10).
// kCodeParitiesMax: most parity packets of one code. A code over bytes has 256 places, for packets
// and parity together. The longer a code, the less its share of lost packets varies, and the less
// parity is enough (docs/measurements/protocol.md). But parity must be enough also if every fourth
// packet is lost.
inline constexpr std::uint32_t kCodePackets = 128;
inline constexpr std::uint32_t kCodeParitiesMax = 96;
// Longest flow that has parity. For longer flows parity would take longer than repair, and owners
// would need too much memory, because contributions stay there until their code is complete.
inline constexpr std::uint32_t kCodedFlowPacketsMax = 8192;
// Flows of up to kEagerPackets packets are sent in copies instead (WIRE 2.12): kCopiesMax at most,
// and only if one copy to every rank is no more than kCopiedPacketsMax packets.
inline constexpr std::uint32_t kCopiesMax = 8;
inline constexpr std::uint32_t kCopiedPacketsMax = 64;
// Below this share of lost datagrams a sender sends no parity, and no copies.
inline constexpr double kCodedLossMin = 1e-4;
// Share of operations in which all copies of some packet may be lost. Such packets are repaired.
inline constexpr double kCopiesShortfall = 0.05;

// Packets of a flow that a sender may send before the peer has said that it opened the operation.
inline constexpr std::uint32_t kEagerPackets = 4;

// Early datagrams kept for operations that this rank has not opened yet, per peer: the eager
// packets of two operations. Further ones are counted and dropped (exact flows are repaired).
inline constexpr std::uint32_t kEarlySlotsPerPeer = 8;

// Most bytes of a rank's Hello at the rendezvous. A longer one is not parsed.
inline constexpr std::size_t kHelloBytesMax = std::size_t{64} * 1024;

// A rank's address in a transport other than UDP. UCX addresses grow with the host's devices: 100 B
// to 1 KiB are usual.
inline constexpr std::size_t kTransportAddressBytesMax = 4096;

// Transports that one rank offers beside UDP.
inline constexpr int kTransportOffersMax = 4;

// Bytes of rank 0's answer, the longest value of a rendezvous. A table of kPeersMax ranks takes
// half of them at most. It has for every rank an address, its place in memory, numbers of 8 bytes,
// and its public key with the names of its secrets.
inline constexpr std::size_t kWelcomeBytesMax =
    std::size_t{kPeersMax} * 2 * (kTransportAddressBytesMax + 48 + 16 + 64);

// Timer resolution promised to callers: no call outlives its deadline by more than this.
inline constexpr std::int64_t kTickNs = 1'000'000;

// Longest silence before a rank asks again, unless a path needs more for a single answer. Time-outs
// double while the round trip of a long path is unknown, and could outlast the deadline.
inline constexpr std::int64_t kBackOffNs = 1'000'000'000;

// A round trip that is longer than expected by this much may mean that a process was paused.
inline constexpr std::int64_t kPauseNs = 100'000'000;

}  // namespace leeway::limits
