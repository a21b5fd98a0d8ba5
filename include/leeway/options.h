// The caller's choices: per communicator (Options) and per call (CollectiveOptions).
//
// Precedence for Options: fields set in code win over the environment, which wins over the defaults
// below. from_environment() is the only function in the library that reads the environment; `leeway
// doctor` lists every variable it understands.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "leeway/codec.h"
#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

class PayloadSink;
class PayloadSource;
class Rendezvous;

// How contributions become one value, element by element, in the order of the ranks. Sums and
// products of f16, bf16, f8e4m3 and f8e5m2 are formed in float32 and rounded once, after the last
// rank. For booleans sum and max mean bor, prod and min mean band; avg and premul_sum of booleans
// are kUnsupported. For floating types band, bor and bxor are kUnsupported.
enum class ReduceOp : std::uint8_t {
  sum = 0,  // sum over all ranks; integers wrap
  // The mean per unit of work (CollectiveOptions::weight). For integers it is the sum, which wraps,
  // divided by the number of ranks and truncated towards zero.
  avg,
  prod,  // product; integers wrap
  min,   // minimum; NaNs are left out, and the result is NaN if all are NaN
  max,   // maximum; treats NaNs like min
  // The sum of each rank's contribution times its CollectiveOptions::factor. The product is rounded
  // to the tensor's type. Otherwise this is like sum, with the same lossy classes and codecs.
  premul_sum,
  band,  // bitwise and; integers and booleans
  bor,   // bitwise or; integers and booleans
  bxor,  // bitwise exclusive or; integers and booleans
};
// Number of reduction operations.
inline constexpr int kReduceOpCount = 9;
// The name: "sum".
LEEWAY_EXPORT std::string_view to_string(ReduceOp op);

// A number that is kept exactly: a double or an integer of up to 64 bits.
class Scalar {
 public:
  // The conversion is implicit, so that `options.factor = 0.5` and `options.factor = 3` compile.
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      // NOLINTNEXTLINE(google-explicit-constructor)
      constexpr Scalar(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      real_ = value;
    } else {
      integer_ = true;
      negative_ = value < 0;
      const auto bits = static_cast<std::uint64_t>(value);
      magnitude_ = negative_ ? 0 - bits : bits;
    }
  }

  // Returns true if as<T>() may be called. Any value fits float and double, which round it. Only a
  // whole number within the range of T fits an integer type.
  template <typename T>
  constexpr bool fits() const {
    if constexpr (std::is_floating_point_v<T>) {
      return true;
    } else {
      if (!integer_) return fits_real<T>();
      constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      if (!negative_) return magnitude_ <= kMax;
      return std::is_signed_v<T> && magnitude_ <= kMax + 1;
    }
  }
  // The value as a T. Requires fits<T>().
  template <typename T>
  constexpr T as() const {
    if (!integer_) return static_cast<T>(real_);
    if constexpr (std::is_floating_point_v<T>) {
      return negative_ ? -static_cast<T>(magnitude_) : static_cast<T>(magnitude_);
    } else {
      return static_cast<T>(negative_ ? 0 - magnitude_ : magnitude_);
    }
  }

  // Returns true if both are the same number. NaN equals nothing.
  friend constexpr bool operator==(const Scalar& a, const Scalar& b) {
    if (a.integer_ && b.integer_) return a.magnitude_ == b.magnitude_ && a.negative_ == b.negative_;
    if (!a.integer_ && !b.integer_) return a.real_ == b.real_;
    const Scalar& integer = a.integer_ ? a : b;
    const Scalar& real = a.integer_ ? b : a;
    return integer.negative_ ? real.equals<std::int64_t>(integer)
                             : real.equals<std::uint64_t>(integer);
  }

 private:
  template <typename T>
  constexpr bool fits_real() const {
    // The largest value of T plus one. It is a power of two, so a double holds it exactly. The
    // largest value itself may be rounded up when it becomes a double.
    constexpr double kBeyond =
        2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<T>::digits - 1));
    const bool in_range =
        real_ < kBeyond && real_ >= static_cast<double>(std::numeric_limits<T>::min());
    return in_range && static_cast<double>(static_cast<T>(real_)) == real_;
  }
  template <typename T>
  constexpr bool equals(const Scalar& integer) const {
    return fits_real<T>() && static_cast<T>(real_) == integer.as<T>();
  }

  bool integer_ = false;
  bool negative_ = false;  // integers only
  std::uint64_t magnitude_ = 0;
  double real_ = 0.0;
};

// How a lossy sum or average is formed from what arrived. Formulas, assumptions and variances:
// src/math/estimate/README.md.
enum class Estimator : std::uint8_t {
  zero_fill = 0,  // lost contributions count as zero; biased, a baseline for debugging
  ratio,          // divide by the weight that arrived (the rule of arXiv 2507.07114)
  // Like ratio, but the owner's own contribution is also dropped at random, as if it crossed the
  // network. Unbiased if all links lose packets with equal probability and something arrives. For
  // weighted averages, weights must also have the same distribution on all ranks.
  symmetric_ratio,
  // The owner's own contribution has its exact share of the result. The other contributions that
  // arrived stand in for those that were lost.
  stratified,
  // Each packet from rank i is multiplied by n_i/k_i: the packets that rank i sent, divided by
  // those that arrived. Unbiased on unequal and bursty links, because an owner that got no packet
  // of a contribution requests all of it until the deadline. In an all_reduce the owner always does
  // so; in other reductions, for contributions of fewer than 64 packets. If the deadline comes
  // first, delivery rates of earlier calls compensate for all but about a tenth of what the
  // deadline cuts off. CollectiveReport says how many contributions were fetched, and how many are
  // missing.
  horvitz_thompson,
  // Horvitz-Thompson around a control variate: less variance, unbiased under the same conditions
  augmented,
};
// Number of estimators.
inline constexpr int kEstimatorCount = 6;
// to_string() returns the name that parse_estimator() reads, such as "horvitz_thompson". For an
// unknown name parse_estimator() returns kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(Estimator estimator);
LEEWAY_EXPORT Result<Estimator> parse_estimator(std::string_view name);

// The delivery class of one call: its promise about completeness and time.
struct Delivery {
  // The three classes; exact(), bounded() and best_effort() make one.
  enum class Kind : std::uint8_t {
    exact = 0,    // every element, or an error
    bounded,      // repairs until at most loss_max is missing, or until the deadline
    best_effort,  // one pass, no repair
  };
  // Number of delivery classes.
  static constexpr int kKinds = 3;
  Kind kind = Kind::exact;  // the class
  // For bounded only: the fraction of packets that may stay lost, 0 .. 1
  double loss_max = 0.0;
  // Time limit, from submission on. At the deadline an exact call fails, and a bounded or
  // best-effort call returns what has arrived. A lossy all_reduce uses contributions that come in
  // the first half of the time. In a call by sites, contributions from the rank's own site must
  // come in the first quarter. The rest of the time is for spreading the result.
  Duration deadline = std::chrono::seconds(60);
};
// A deadline that never comes. The call ends when it is done, or when a peer is dead
// (Options::peer_timeout). It waits for a live rank that is busy with something else, however long.
inline constexpr Duration no_deadline = Duration::max();  // NOLINT(readability-identifier-naming)

// Delivers every element by the deadline, or fails with an error that names rank, operation, peer
// and deadline.
constexpr Delivery exact(Duration deadline = std::chrono::seconds(60)) {
  return {Delivery::Kind::exact, 0.0, deadline};
}
// Repairs until at most `loss_max` (0 .. 1) of the packets is missing, or until the deadline.
constexpr Delivery bounded(double loss_max, Duration deadline) {
  return {Delivery::Kind::bounded, loss_max, deadline};
}
// Sends once. The call ends when everything has arrived, when senders are done and the network is
// quiet, or at the deadline.
constexpr Delivery best_effort(Duration deadline) {
  return {Delivery::Kind::best_effort, 1.0, deadline};
}
// The name, such as "best_effort".
LEEWAY_EXPORT std::string_view to_string(Delivery::Kind kind);

// Options of one call. Some must be equal on all ranks of a collective; each rank chooses the
// others for itself. The following table holds over every transport:
//
//   must be equal    the operation, its data type, root, elements (0 among them) and blocks (not
//                    their gaps), op, delivery.kind, spread, codec, spread_codec (format and what a
//                    receiver needs to read it, not rounding), estimator, confirm_use
//   may differ       delivery.deadline, delivery.loss_max, factor, weight, owner_weights,
//                    keep_non_finite, residual, control_variate, in place or not, and, unless calls
//                    go by sites or lanes (Options::site, Options::lanes), source and sink; and
//                    what has no meaning in the call: op without a reduction, estimator in exact
//                    calls, spread and spread_codec in all but all_reduce
//
// A difference fails the collective with kMismatch on all ranks; the next collective is not
// affected. The text names two ranks and what each has. A rank may be done before the difference is
// found, if all ranks that it waits for make the same call. For example, the root of a small
// broadcast or scatter waits for no rank, and a receiver waits for the root alone. A rank that
// sends to another root waits for no rank. If one rank refuses a collective, say with
// kInvalidArgument, the collective fails on all ranks. A collective of no elements ends when all
// ranks have come to it, as a barrier does. If a rank does not come, the collective ends as its
// delivery class says.
struct CollectiveOptions {
  ReduceOp op = ReduceOp::sum;  // reductions only
  // premul_sum only: the number that multiplies this rank's contribution; ranks may differ. For
  // integers it must be a whole number in the type's range, else kInvalidArgument. For floating
  // types it is rounded to float32, except for f64. All other reductions require 1.
  Scalar factor = 1;
  Delivery delivery{};  // for the reduce half, or the only half

  // Delivery class of the spread half of an all_reduce; its deadline is always the call's.
  //   exact        all ranks hold the same bits, or the call fails: kDeadlineExceeded, or kPeerLost
  //                if a rank is gone. The text says how much is missing and from which rank.
  //   bounded      repaired until nothing is missing, or until the deadline. Missing elements are 0
  //                (a PayloadSink leaves them as they were), and CollectiveReport counts them.
  //                Ranks may differ then.
  //   best_effort  sent once. Missing elements keep their value in the output; in a call by sites
  //                they become 0.
  Delivery::Kind spread = Delivery::Kind::exact;

  CodecOptions codec;  // codec of the reduce half, or of the only half
  // Codec of the spread half; default: the same as `codec`.
  std::optional<CodecOptions> spread_codec;
  Estimator estimator = Estimator::ratio;  // used by lossy sum/avg only

  // Units of work (samples, micro-batches) behind this rank's contribution: 0, or 2^-64 .. 2^64.
  // With op = avg the contribution is the *sum* over its units. The result is the mean per unit.
  // With Estimator::ratio it is sum R G / sum R c: R is 1 for contributions that arrived and else
  // 0, G is the contribution, c its weight. A rank with weight 0 contributes nothing, whatever its
  // input holds. If all weights are 0, the result is zeros, reported as elements_untouched. All
  // other reductions, and averages of float64 and of integers, require weight 1.
  double weight = 1.0;

  // Weights by owner, one for each rank, in place of `weight`. A rank needs them if it contributes
  // more units to the shards of some owners than to other shards (LateWork). If empty, `weight`
  // holds for all owners. The call reads them until it completes. All ranks must set confirm_use.
  std::span<const double> owner_weights{};

  // Tag of a message (send, recv). A receive takes only messages of its own tag, and messages of
  // different tags do not wait for each other. A communicator may use 65,536 different tags with
  // one peer in its life. Other operations require 0.
  std::uint32_t tag = 0;

  // If true, a lossy reduction waits until every owner has said whether it used any of this rank's
  // contribution (PeerReport::missed). This takes one more round trip, and ends at the deadline.
  bool confirm_use = false;

  // If false, lossy sums and averages of floating types leave out each packet of a contribution
  // that holds an infinity or a NaN, as if it were lost (CollectiveReport::non_finite). One rank's
  // overflow, or one faulty rank, then spoils nobody's result. If true, such packets are summed, as
  // in exact calls and calls with a PayloadSource. A loss scaler needs true, because it looks for
  // infinities in the result.
  bool keep_non_finite = false;

  // For augmented only: a float32 guess of the result, such as the result of the last step, with
  // the tensor's full count. The tensor must be float32, too (else kUnsupported). The guess must
  // not depend on this call's loss. If empty, the owner's own contribution serves as the guess. It
  // is read until the call completes.
  std::span<const float> control_variate{};

  // Error feedback. The residual holds what the encoding left out in this rank's earlier calls. The
  // call adds it to the contribution before encoding. On return the residual holds what this call's
  // encoding left out, but not what packet loss took. It is float32, as the tensor must be
  // (kUnsupported for float16 and bfloat16), and has the input's full count. Each tensor needs its
  // own residual, which is zeros before the first call. Over steps it compensates for the bias of
  // nearest rounding, but single results stay biased. If the contribution to an owner has weight 0,
  // that owner's part stays in the residual for a later call. If empty, there is no error feedback.
  std::span<float> residual{};

  // The caller's code that encodes, sums and decodes instead of the library; give both or neither
  // (leeway/payload.h says for which calls). The library then uses only size and type of the
  // tensors, and does not touch their memory.
  PayloadSource* source = nullptr;
  PayloadSink* sink = nullptr;
};

// Loss and other faults, injected on the receiving side of any transport. A keyed hash of a
// packet's ranks, round, half, index and attempt decides, so the same seed loses the same packets
// whatever the timing. Probabilities are 0 .. 1.
struct FaultOptions {
  double loss = 0.0;  // fraction of datagrams lost
  // Mean length of a loss burst, in packets of one flow; 1 = independent losses
  double burst = 1.0;
  double duplicate = 0.0;
  double reorder = 0.0;  // fraction held back behind up to 8 later datagrams
  double corrupt = 0.0;  // fraction with one bit flipped
  Duration delay{0};     // added to every datagram
  std::uint64_t seed = 1;
  std::vector<double> link_loss;  // by source rank; overrides `loss` for that link when not empty
  // "src>dst/round/phase/index[,...]": packets whose first attempt is lost, besides those that
  // `loss` hits; * matches all
  std::string list;

  // Returns true if any fault is injected.
  bool any() const {
    return loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || delay.count() > 0 ||
           !link_loss.empty() || !list.empty();
  }
};
// Parses a text such as
// "loss=0.1,burst=8,dup=0.01,reorder=0.01,corrupt=0.001,delay=5ms,seed=3,list=0>1/*/0/3". Every key
// is optional.
LEEWAY_EXPORT Result<FaultOptions> parse_faults(std::string_view text);

// Transports that carry datagrams between ranks.
enum class TransportKind : std::uint8_t {
  // verbs if all ranks can use it, else mixed. With injected faults it is udp. It is never ucx,
  // which must be asked for by name
  automatic = 0,
  udp,
  verbs,   // InfiniBand and RoCE, unreliable datagrams
  ucx,     // reliable: nothing is lost, whatever the delivery class allows. Not with a secret
  inproc,  // threads of one process: Communicator::create_inproc()
  custom,  // the caller's own: Communicator::create(options, transport)
  shm,     // memory of one host; an error unless every pair of ranks shares it
  mixed,   // shared memory to ranks of the same host where possible, udp to all others
};
// to_string() returns the name that parse_transport() reads, such as "auto" for automatic. For an
// unknown name parse_transport() returns kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(TransportKind kind);
LEEWAY_EXPORT Result<TransportKind> parse_transport(std::string_view name);

// Congestion control: how the datagrams that a process sends are paced. A process paces each socket
// in one way, so communicators with different settings do not share a socket.
enum class CongestionControl : std::uint8_t {
  none = 0,   // limited by credit and sockets only; for a machine or a network of one's own
  fixed,      // at Options::rate_bits_per_second
  scavenger,  // only what other traffic leaves (LEDBAT++)
  wan,        // for links that lose packets by themselves and that others use
  // `wan` if datagrams go over UDP and a rank has a public address, or a round trip of more than
  // 2 ms to rank 0; else `none`. Decided when the group meets, alike on all ranks. The round trip
  // is measured over the TCP connection to rank 0, or, with a store of the caller's, to the store
  // (Rendezvous::round_trip). Communicator::options() says what was chosen.
  automatic,
  fabric,  // short queues, for a network of one's own with short round trips. Experimental
};
// to_string() returns the name that parse_congestion_control() reads, such as "wan". For an unknown
// name parse_congestion_control() returns kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(CongestionControl control);
LEEWAY_EXPORT Result<CongestionControl> parse_congestion_control(std::string_view name);

// Options of one communicator. Zero and empty values mean "derive it". If neither this struct nor
// the environment gives rank and world_size, the group is this process alone.
struct Options {
  std::optional<int> rank;        // LEEWAY_RANK, or the launcher's
  std::optional<int> world_size;  // LEEWAY_WORLD_SIZE, or the launcher's
  // LEEWAY_RENDEZVOUS: "host:port" of rank 0's TCP listener, "[v6]:port" for IPv6; see also `store`
  std::string rendezvous;
  // LEEWAY_TRANSPORT: auto, udp, verbs, ucx, inproc, shm or mixed; equal on all ranks.
  // create(options, transport) ignores it.
  TransportKind transport = TransportKind::automatic;
  // LEEWAY_MULTICAST: data that goes to all ranks alike (the spread half) is sent once, where the
  // network can carry it to them. Off by default: switches that do not follow memberships flood
  // multicast to every port.
  bool multicast = false;
  // LEEWAY_BIND: local address for data. If empty, the address that routes to rank 0
  std::string bind_address;
  // LEEWAY_PORT: the UDP port, for firewalls. With 0 the system chooses. Only one process of a host
  // can have a port, so with LEEWAY_PORT local rank r takes port + r * lanes.
  std::uint16_t port = 0;
  // LEEWAY_SECRET_FILE: a file made by `leeway keygen`, which only its owner may be able to read.
  // All ranks must have the same secret. A process that does not know it can neither take part in a
  // call nor end one (ThreatModel.md). If this and the certificates are empty, create() takes those
  // that the environment names. If it names none, create() fails if an address is neither loopback
  // nor private.
  std::string secret_file;
  // The content of a secret file, for a program that gets its secret in another way. Not together
  // with secret_file.
  std::string secret;
  // If true, `secret`, equal on all ranks, only proves who takes part in the meeting. The keys of a
  // pair of processes then do not depend on `secret`, so that communicators with different secrets
  // share sockets and threads. Use this only if a member of the group owns the rendezvous, and the
  // rendezvous is keyed itself (TcpRendezvous with a secret). The owner of any other store could
  // stand between two ranks.
  bool secret_for_meeting_only = false;
  // LEEWAY_REQUIRE_SEALED: create() fails if a group of several ranks would not be encrypted.
  bool require_sealed = false;
  // LEEWAY_INSECURE: allows public addresses without a secret, for laboratories.
  bool insecure = false;
  // LEEWAY_TLS_CA, LEEWAY_TLS_CERT, LEEWAY_TLS_KEY: PEM files, instead of a secret file or in
  // addition to it. Ranks then prove at the rendezvous that an authority has named them members of
  // one job: each certificate has the alternative name URI:urn:leeway:JOB. docs/wide-area.md makes
  // such files in five lines. With certificates but no secret file, ranks must meet over TCP.
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;                               // only its owner may be able to read it
  Duration join_timeout = std::chrono::seconds(60);  // LEEWAY_JOIN_TIMEOUT_MS
  // LEEWAY_PEER_TIMEOUT_MS: a peer from which something is expected counts as dead once its process
  // has been silent for this long. Exact calls with the peer then fail, and lossy calls no longer
  // wait for the peer. The time is at least 100 ms, and at least eight time-outs of the path. With
  // no_deadline, peers never count as dead
  Duration peer_timeout = std::chrono::seconds(3);
  // LEEWAY_DATAGRAM_BYTES: largest UDP payload; default: from the path MTU. All ranks take the
  // smallest
  std::size_t datagram_bytes = 0;
  // LEEWAY_SOCKET_BUFFER_BYTES: for each direction. 0 means 8 MiB, or as much as the kernel allows
  std::size_t socket_buffer_bytes = 0;
  // LEEWAY_WINDOW_BYTES: limit on the bytes in flight to one peer on one lane; equal on all ranks.
  // 0 means 1 MiB. The window is limited to this rank's share of the peer's receive buffer. With
  // congestion control the limit is 64 MiB divided by the number of peers if that is more than the
  // share, and 0 means the limit
  std::size_t window_bytes = 0;
  // LEEWAY_CONGESTION: automatic, none, fixed, scavenger, wan or fabric
  CongestionControl congestion = CongestionControl::automatic;
  // LEEWAY_RATE: bits per second to all peers together under CongestionControl::fixed. Setting
  // LEEWAY_RATE selects `fixed` unless LEEWAY_CONGESTION is set.
  std::uint64_t rate_bits_per_second = 0;
  // LEEWAY_SITE: the name of this rank's site; "host" means the host itself. Used if all ranks name
  // their site, and there are several sites with equally many ranks. Large all_reduces,
  // reduce_scatters and all_gathers then go inside sites and between them, so that a site of h
  // ranks sends 1/h of the bytes to other sites. CollectiveReport::sites says whether a call went
  // by sites, and what that means for estimators. Results are equal on all ranks, but are rounded
  // differently than without sites. If empty, calls go straight between all ranks, as in all
  // communicators that split() and shrink() make.
  std::string site;
  // LEEWAY_LANES, 1 .. 8, equal on all ranks: number of lanes that this process has over UDP. Each
  // lane has a socket, a thread and, with LEEWAY_PORT, the next port. One thread moves some
  // 25 Gb/s. Large all_reduces, all_gathers and broadcasts are cut into one slice for each lane
  // (CollectiveReport::lanes). All other calls go over the first lane. Several lanes and multicast
  // exclude each other. Over other transports, or if memory connects all ranks, there is one lane.
  int lanes = 1;
  // LEEWAY_SEED: seeds permutations, stochastic rounding and virtual losses; all ranks use rank 0's
  // value
  std::uint64_t seed = 0;
  FaultOptions faults;             // LEEWAY_FAULT
  std::string log_level = "warn";  // LEEWAY_LOG: trace debug info warn error off
  // LEEWAY_METRICS "host:port": this process serves metrics of its communicators there, for
  // Prometheus and `leeway top`. With port 0 a free port is taken, which the log names. Anyone who
  // reaches the port may read. So the address must be loopback or private, unless "public:" stands
  // before it. If empty, there are no metrics. All communicators of a process that name the same
  // address share it.
  std::string metrics;
  // LEEWAY_TRACE: file for a qlog of every datagram (JSON-SEQ, for qvis), at most 64 MiB. With more
  // than one rank, the rank stands before the ending: for rank 3, "run.sqlog" becomes
  // "run.3.sqlog". A device or a pipe is refused, and the log says so. If empty, there is no trace.
  std::string trace;
  // Groups of different names may meet at the same place, also at the same time. Ranks whose names
  // differ do not find each other and time out.
  std::string communicator_name = "world";

  // The store where ranks meet, instead of at rank 0's TCP listener (leeway/rendezvous.h). With a
  // store, `rendezvous` may be empty. If it is not, its host only selects the local address for
  // data: the address from which a route leads to that host. If `rendezvous` has port 0 on all
  // ranks, they meet over TCP nevertheless. Rank 0 then listens at a port that the system chooses,
  // and the store carries only the address.
  std::shared_ptr<Rendezvous> store;
  // Number of this start of the job; part of every key in the store. Ranks with different numbers
  // do not find each other and time out, so a rank that an earlier start left behind cannot join
  // this one. With `store`, 0 suffices, even if later attempts meet in the store of earlier ones.
  // from_environment() derives it from LEEWAY_RUN_ID, else from torchrun's --rdzv-id or the
  // identifier of an Open MPI job.
  std::uint64_t restart_count = 0;

  // The source of this process's rank and of the number of ranks.
  enum class Membership : std::uint8_t {
    // LEEWAY_RANK and LEEWAY_WORLD_SIZE, or the launcher (torchrun, Open MPI, PMI, Slurm), which
    // may give the rendezvous as well
    from_environment = 0,
    // The caller, for a group that is not the launcher's. rank and world_size stay unset, and
    // variables that give them are not read. LEEWAY_RENDEZVOUS is read.
    from_caller,
  };
  // Reads environment variables: LEEWAY_* and those of launchers. A variable that is empty or does
  // not parse is an error.
  LEEWAY_EXPORT static Result<Options> from_environment(
      Membership membership = Membership::from_environment);
};

}  // namespace v0
}  // namespace leeway
