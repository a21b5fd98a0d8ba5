// Every limit of the library, with its unit and its reason. These limits bound loops over input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leeway::limits {

// Ranks of one communicator. Per-peer state is a few hundred bytes; the transpose schedule keeps
// N-1 flows open.
inline constexpr int kPeersMax = 1024;

// Open operations that a report lists (wire), and how far ahead of its receiver an operation's
// early datagrams are kept.
inline constexpr int kOpenRoundsMax = 16;

// Collectives of one communicator that are open at the same time; further ones queue at the
// caller's side. Two entries of every report stay free for a receive and for a send, on which they
// may wait.
inline constexpr int kOpenCollectivesMax = kOpenRoundsMax - 2;

// Messages (send/recv) may be open in any number. So many of each tag and direction between two
// ranks, the oldest, talk at a time; the others cost nothing but memory until their turn comes.
inline constexpr int kTalkingMessagesMax = 16;

// Tags that this rank ever used with one peer. The numbers of each go on for the communicator's
// life: some 250 bytes a tag.
inline constexpr std::size_t kTagsPerPeerMax = std::size_t{1} << 16;

// How far ahead of its own a rank believes that a peer's numbers of messages of a tag are.
inline constexpr std::uint32_t kMessagesHeardMax = 1u << 24;

// The same of collectives: by how many a peer may be ahead. Numbers are compared modulo 2^32: one
// that was believed and is far ahead would make all true ones after it old.
inline constexpr std::uint32_t kRoundsAheadMax = 1u << 28;

// Packets of a flow that its receiver asked for again are sent so many times the flow's length,
// over the share of datagrams that arrive. An exact flow needs one over that share, and where
// bursts fill a short queue three of four are lost. From then on a request gets one packet, so that
// requests cost a peer as much as it costs to answer them.
inline constexpr std::uint32_t kRepairsPerPacket = 4;
// The least share that a receiver's reports are believed for this.
inline constexpr double kRepairedShareMin = 1.0 / 16;

// Probes of one peer that are answered in a round trip. Honest ones come once in several.
inline constexpr int kProbeAnswersPerRoundTrip = 8;

// Least and largest weight of a contribution but 0. Sums of a thousand of them and their
// reciprocals, times n/k of a link, stay far within float32, in which weights travel and results
// are scaled.
inline constexpr double kWeightMin = 0x1p-64;
inline constexpr double kWeightMax = 0x1p64;

// Of these tags, so many may have posted receives listed in one report; the next one lists others.
inline constexpr int kListedStreamsMax = 8;

// Tags of messages between two ranks for which a report says how many receives have been posted,
// the latest first.
inline constexpr int kReportedStreamsMax = 16;

// Messages that were given up lately, of which a report says so, and how many reports do. A
// receiver that did not hear it lists its receive again, and is told again.
inline constexpr int kGivenUpMax = 4;
inline constexpr int kGivenUpReports = 4;

// Packets that one rank sends another in one phase of one operation. 2^22 packets of 1,408 B
// are 5.9 GB a link.
inline constexpr std::uint32_t kFlowPacketsMax = 1u << 22;

// Packets of a chunk, the unit in which complete data are reduced: one word of the arrival bitmap.
inline constexpr std::uint32_t kChunkPacketsMax = 64;

// Largest datagram accepted or made, over any transport: memory between the ranks of a host takes
// it in one piece.
inline constexpr std::size_t kDatagramBytesMax = std::size_t{32} * 1024;

// Largest that an option may ask for, and UDP sends: a jumbo frame. Larger ones would be fragmented
// on every real network.
inline constexpr std::size_t kFrameBytesMax = 9216;

// Smallest datagram a path must carry; IPv6's guarantee less headers.
inline constexpr std::size_t kDatagramBytesMin = 512;

// Carriers of a process for one communicator (Options::lanes): more than a host has cores to spare.
inline constexpr int kLanesMax = 8;

// Bits per second that CongestionControl::fixed may be asked for: 10 kbit/s to 1 Tbit/s.
inline constexpr std::uint64_t kRateMin = 10'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000'000;

// Datagrams that a peer's grant leaves in flight at least (WIRE 3.16): reports go on, and with them
// whatever raises the grant again.
inline constexpr std::uint32_t kGrantedDatagramsMin = 4;

// Packets of a flow that parity of one code covers together (WIRE 2.10), and parities of them at
// most. A code over bytes has 256 places, packets and parities together. The longer a code, the
// less its losses vary, and the less parity is enough (docs/measurements/protocol.md). But parity
// must be enough where every fourth packet is lost, too.
inline constexpr std::uint32_t kCodePackets = 128;
inline constexpr std::uint32_t kCodeParitiesMax = 96;
// Flows of more packets have no parity. It would take longer than asking for what was lost, and
// owners would keep too much: contributions stay in memory as long as their code is not whole.
inline constexpr std::uint32_t kCodedFlowPacketsMax = 8192;
// Flows of up to kEagerPackets packets leave in copies instead (WIRE 2.12): in so many at most, and
// only where one copy to every rank is no more packets than these.
inline constexpr std::uint32_t kCopiesMax = 8;
inline constexpr std::uint32_t kCopiedPacketsMax = 64;
// Below this share of lost datagrams a sender sends no parity, and no copies.
inline constexpr double kCodedLossMin = 1e-4;
// Share of operations in which all copies of some packet may be lost: those are repaired.
inline constexpr double kCopiesShortfall = 0.05;

// Packets of a flow that a sender may send before the peer said that it opened the operation.
inline constexpr std::uint32_t kEagerPackets = 4;

// Early datagrams held for operations that this rank has not opened yet, per peer. Two operations'
// worth of eager packets; beyond that they are counted and dropped (exact flows are repaired).
inline constexpr std::uint32_t kEarlySlotsPerPeer = 8;

// Bytes of a rank's Hello at the rendezvous. A longer one is not parsed.
inline constexpr std::size_t kHelloBytesMax = std::size_t{64} * 1024;

// A rank's address in a transport other than UDP. UCX's grow with the host's devices: 100 B to 1
// KiB are usual.
inline constexpr std::size_t kTransportAddressBytesMax = 4096;

// Transports that one rank offers beside UDP.
inline constexpr int kTransportOffersMax = 4;

// Bytes of rank 0's answer: for every rank an address in each of two transports, 48 bytes around
// each of them, two numbers of 8 bytes, and its public key with the names of its secrets. No value
// of a rendezvous is longer.
inline constexpr std::size_t kWelcomeBytesMax =
    std::size_t{kPeersMax} * 2 * (kTransportAddressBytesMax + 48 + 16 + 64);

// Timer resolution promised to callers: no call outlives its deadline by more than this.
inline constexpr std::int64_t kTickNs = 1'000'000;

// Longest silence before a rank asks again, unless a path needs more for a single answer. Time-outs
// double while the round trip of a long path is unknown. Without this bound they would outlast the
// deadline once it is known.
inline constexpr std::int64_t kBackOffNs = 1'000'000'000;

// A round trip that exceeds what was to be expected by this much may be a pause of a process.
inline constexpr std::int64_t kPauseNs = 100'000'000;

}  // namespace leeway::limits
