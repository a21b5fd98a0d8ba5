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
// caller's side. Two entries of every report stay free for a receive and a send, because
// collectives may wait for those.
inline constexpr int kOpenCollectivesMax = kOpenRoundsMax - 2;

// Messages (send/recv) may be open in any number. For each tag and direction between two ranks,
// only this many of the oldest ones exchange datagrams at a time. The others only take memory until
// it is their turn.
inline constexpr int kTalkingMessagesMax = 16;

// Tags that this rank ever used with one peer. The message numbers of each tag go on for the
// communicator's life: some 250 bytes a tag.
inline constexpr std::size_t kTagsPerPeerMax = std::size_t{1} << 16;

// How far a peer's message number of a tag may be ahead of this rank's own. A number further ahead
// is not believed.
inline constexpr std::uint32_t kMessagesHeardMax = 1u << 24;

// A peer's collective number may be ahead of this rank's own by this much. Numbers are compared
// modulo 2^32. If this rank believed a number far ahead, all true numbers after it would seem old.
inline constexpr std::uint32_t kRoundsAheadMax = 1u << 28;

// Bound on packets that a flow's receiver asks for again: this many times the flow's length, over
// the share of datagrams that arrive. An exact flow needs that much once; but where bursts fill a
// short queue, three of four packets are lost. Beyond the bound a request gets one packet, so that
// asking costs a peer as much as answering.
inline constexpr std::uint32_t kRepairsPerPacket = 4;
// Least share of arriving datagrams that this bound assumes, whatever the receiver reports.
inline constexpr double kRepairedShareMin = 1.0 / 16;

// Probes of one peer that are answered in a round trip. Honest ones come once in several.
inline constexpr int kProbeAnswersPerRoundTrip = 8;

// Least and largest weight of a contribution, apart from 0. Sums of a thousand of them and their
// reciprocals, times n/k of a link, stay far within float32, in which weights travel and results
// are scaled.
inline constexpr double kWeightMin = 0x1p-64;
inline constexpr double kWeightMax = 0x1p64;

// Most tags whose posted receives one report lists. The next report lists others.
inline constexpr int kListedStreamsMax = 8;

// Tags of messages between two ranks for which a report says how many receives have been posted.
// The tags used last come first.
inline constexpr int kReportedStreamsMax = 16;

// Sends of copied messages to a peer that may be done before the peer has them: 4 MiB of memory.
inline constexpr std::uint32_t kSendsAheadMax = 64;

// Messages given up lately that a report lists, and the number of reports that list each of them. A
// receiver that missed all of these reports lists its receive again, and is told again.
inline constexpr int kGivenUpMax = 4;
inline constexpr int kGivenUpReports = 4;

// Packets that one rank sends another in one phase of one operation. 2^22 packets of 1,408 B
// are 5.9 GB a link.
inline constexpr std::uint32_t kFlowPacketsMax = 1u << 22;

// Packets of a chunk, the unit in which complete data are reduced: one word of the arrival bitmap.
inline constexpr std::uint32_t kChunkPacketsMax = 64;

// Largest datagram accepted or made, over any transport. Memory between the ranks of a host takes
// it in one piece.
inline constexpr std::size_t kDatagramBytesMax = std::size_t{32} * 1024;

// Largest datagram that an option may ask for, and that UDP sends: a jumbo frame. Larger ones would
// be fragmented on every real network.
inline constexpr std::size_t kFrameBytesMax = 9216;

// Smallest datagram a path must carry; IPv6's guarantee less headers.
inline constexpr std::size_t kDatagramBytesMin = 512;

// Lanes of a process for one communicator (Options::lanes): more than a host has cores to spare.
inline constexpr int kLanesMax = 8;

// Bits per second that CongestionControl::fixed may be asked for: 10 kbit/s to 1 Tbit/s.
inline constexpr std::uint64_t kRateMin = 10'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000'000;

// Datagrams in flight that a peer's grant always allows (WIRE 3.16). So reports go on, which can
// raise the grant again.
inline constexpr std::uint32_t kGrantedDatagramsMin = 4;

// kCodePackets: packets of a flow that parity of one code covers together (WIRE 2.10).
// kCodeParitiesMax: most parities of one code. A code over bytes has 256 places, packets and
// parities together. The longer a code, the less its losses vary, and the less parity is enough
// (docs/measurements/protocol.md). But parity must be enough also if every fourth packet is lost.
inline constexpr std::uint32_t kCodePackets = 128;
inline constexpr std::uint32_t kCodeParitiesMax = 96;
// Longest flow that has parity. For longer ones parity would take longer than repair, and owners
// would keep too much: contributions stay in memory until their code is whole.
inline constexpr std::uint32_t kCodedFlowPacketsMax = 8192;
// Flows of up to kEagerPackets packets are sent in copies instead (WIRE 2.12): kCopiesMax at most,
// and only if one copy to every rank is no more than kCopiedPacketsMax packets.
inline constexpr std::uint32_t kCopiesMax = 8;
inline constexpr std::uint32_t kCopiedPacketsMax = 64;
// Below this share of lost datagrams a sender sends no parity, and no copies.
inline constexpr double kCodedLossMin = 1e-4;
// Share of operations in which all copies of some packet may be lost. These are repaired.
inline constexpr double kCopiesShortfall = 0.05;

// Packets of a flow that a sender may send before the peer has said that it opened the operation.
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

// Bytes of rank 0's answer. A table of kPeersMax ranks takes half of them at most: for every rank
// an address, its place in memory, numbers of 8 bytes, and its public key with the names of its
// secrets. No value of a rendezvous is longer.
inline constexpr std::size_t kWelcomeBytesMax =
    std::size_t{kPeersMax} * 2 * (kTransportAddressBytesMax + 48 + 16 + 64);

// Timer resolution promised to callers: no call outlives its deadline by more than this.
inline constexpr std::int64_t kTickNs = 1'000'000;

// Longest silence before a rank asks again, unless a path needs more for a single answer. Time-outs
// double while the round trip of a long path is unknown. Without this bound they would outlast the
// deadline once it is known.
inline constexpr std::int64_t kBackOffNs = 1'000'000'000;

// A round trip that is this much longer than expected may be a pause of a process.
inline constexpr std::int64_t kPauseNs = 100'000'000;

}  // namespace leeway::limits
