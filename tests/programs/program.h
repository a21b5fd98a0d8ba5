// A random program as plain data: steps in one global order. Each rank takes those steps that it is
// part of, in this order. So no program can block itself: no rank of the first unfinished step
// waits in an earlier step.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::programs {

inline constexpr int kRanksMax = 8;

enum class Route : std::uint8_t {
  automatic,  // the defaults: on one host, exact collectives go straight through memory
  near,       // the same route, asked for by name
  shm,        // datagrams through memory: a communicator that split() made has no arena
  mixed,      // memory between ranks of one half, UDP between the halves; processes only
  udp,
  inproc,   // threads only
  sites,    // UDP, two sites
  lanes,    // UDP, two sockets a rank
  sealed,   // UDP, with a secret
  faulted,  // UDP that loses, doubles, holds back and spoils datagrams
};
inline constexpr int kRouteCount = 10;
std::string_view to_string(Route route);

enum class Kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  message,   // messages[0]: one send and one receive
  exchange,  // all of `messages`, a call on each rank
  wrong,     // the ranks of `who` make a call with wrong arguments, and are told so
  mismatch,  // the rank of `who` calls otherwise than the others, and all are told so
  split,     // a communicator for each color
  create,    // a communicator of all ranks
  shrink,    // a communicator without the ranks of `who`
  allocate,  // memory that all ranks map; later calls lie in it
  destroy,   // the ranks of `who` destroy their communicator
  abort,     // the ranks of `who` abort it
  sync,      // ranks wait for each other by means of their own
  fork,      // the ranks of `who` fork a child, whose calls all return an error
  leave,     // the ranks of `who` exit, in the middle of all; processes only
  pause,     // the ranks of `who` do nothing for `after_us`
};
std::string_view to_string(Kind kind);
constexpr bool is_collective(Kind kind) {
  return kind <= Kind::barrier;
}
constexpr bool is_reduction(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

// The argument in which one rank's call differs from the others'.
enum class Difference : std::uint8_t {
  count = 0,
  size,     // so different that the call may take another route
  nothing,  // no elements
  type,
  op,
  kind,
  delivery,
  estimator,
  spread,
  codec,
  confirm_use,
  refused,  // its call makes no sense
  block,    // it sends one rank more than that rank expects, which the other ranks cannot see
};
inline constexpr std::size_t kDifferences = 13;
std::string_view to_string(Difference difference);

// One message. Ranks are those of the communicator.
struct Envelope {
  int from = 0;
  int to = 0;
  std::size_t count = 0;
  std::size_t spare = 0;  // elements that the receive has room for beyond those
  std::uint32_t tag = 0;
  bool any = false;  // received from kAnyRank; then no other rank sends with the tag
  // The receive has another type of the same size, so the message fails. Only in steps of
  // Kind::message with float32.
  bool unlike = false;
  bool too_long = false;  // the receive has room for one element less, and fails; likewise

  bool matches() const { return !unlike && !too_long; }
  // Returns the number of elements for which the receive has room.
  std::size_t room() const { return too_long ? count - 1 : count + spare; }

  bool operator==(const Envelope&) const = default;
};

// The form in which a rank makes a call and waits for it.
struct Way {
  enum class How : std::uint8_t {
    blocking = 0,
    waited,   // wait() after `later` further steps
    polled,   // test() in a loop after `later` further steps
    patient,  // wait_for() in a loop after `later` further steps
    // after `later` further steps the rank waits for the callback of on_done(), which calls wait()
    called,
  };
  How how = How::blocking;
  std::uint8_t later = 0;

  bool operator==(const Way&) const = default;
};

struct Step {
  Kind kind = Kind::barrier;
  int comm = 0;            // 0 is the group's; the others are numbered by the steps that make them
  std::uint32_t salt = 0;  // seed of the values
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  // elements of a block
  int root = 0;
  bool in_place = false;
  bool uneven = false;     // blocks of different lengths, `count` at most
  bool displaced = false;  // and with gaps
  bool longer = false;     // all_to_all only: the block to longer_to() has one element more
  Delivery::Kind delivery = Delivery::Kind::exact;
  Estimator estimator = Estimator::ratio;
  Delivery::Kind spread = Delivery::Kind::exact;
  Codec codec = Codec::native;
  bool confirm_use = false;
  Difference difference = Difference::count;  // mismatch steps only
  bool endless = false;                       // no deadline
  int allocation = -1;  // all_reduce only: the step whose memory holds its tensors
  std::vector<Envelope> messages;
  bool crossed = false;     // odd ranks list the messages in the opposite order
  std::vector<int> colors;  // split only: by rank of the communicator; -1 for none
  std::vector<int> keys;
  int made = 0;                       // number of the first communicator that the step makes
  unsigned who = 0;                   // ranks, as bits
  std::array<Way, kRanksMax> ways{};  // by rank of the communicator
  // Deadlines in microseconds, by rank of the communicator. They are so short that most of them cut
  // the call. 0 stands for the usual, long deadline.
  std::array<std::uint32_t, kRanksMax> cuts_us{};
  // In steps Kind::abort and Kind::leave: microseconds from the rank's arrival at the step until it
  // aborts or leaves, during its next steps. In Kind::pause: the length in microseconds.
  std::uint32_t after_us = 0;
  bool may_fail = false;  // a rank left its communicator, or may have

  bool is_cut() const {
    return std::any_of(cuts_us.begin(), cuts_us.end(), [](std::uint32_t us) { return us != 0; });
  }
  bool is_lossy() const { return is_reduction(kind) && delivery != Delivery::Kind::exact; }
  bool operator==(const Step&) const = default;
};

// Returns the order in which a rank lists the messages of a step, as places in Step::messages.
std::vector<std::size_t> order_of_messages(const Step& step, int rank);

// The type of an unlike receive.
inline constexpr DataType kUnlike = DataType::i32;

// Returns the rank to which rank `from` sends a longer block than that rank expects
// (Difference::block).
constexpr int longer_to(int from) {
  return from == 0 ? 1 : 0;
}
// Returns a rank's call in a mismatch step. `among` says that the rank is one of those that differ.
Step differing(const Step& step, bool among);
// Returns true if `rank`, whose call does not differ, may finish it before the mismatch is found.
// It may if all ranks that its call waits for make the same call.
bool may_be_done_first(const Step& step, int rank);

enum class Front : std::uint8_t { cpp, c, nccl };
std::string_view to_string(Front front);

struct Program {
  std::uint64_t seed = 0;
  Route route = Route::automatic;
  Front front = Front::cpp;
  bool processes = false;   // ranks are processes, not threads
  bool by_address = false;  // ranks meet at an address, not in a store
  int ranks = 2;
  std::vector<Step> steps;
};

// The members of each communicator, as ranks of the program, in the order of their ranks in the
// communicator. A communicator that no step makes has no members.
class Groups {
 public:
  explicit Groups(const Program& program);
  const std::vector<int>& of(int comm) const;
  // Returns the number of the communicator that a step makes for `rank`, or -1. `rank` and `size`
  // are those of the step's communicator.
  static int made(const Step& step, int rank, int size);
  int count() const { return static_cast<int>(members_.size()); }

 private:
  std::vector<std::vector<int>> members_;
};

inline constexpr char kSecret[] =
    "6c2f1bd09f3f0d3c2b8e4a7795d1c0ffee0123456789abcdef1032547698badc";

// Number of programs, with consecutive seeds, that run one after the other on one group of ranks.
// They have the same route, front and ranks.
inline constexpr std::uint64_t kProgramsOfAGroup = 16;

struct Limits {
  bool any_route = true;
  Route route = Route::automatic;
  Front front = Front::cpp;
  bool differing = false;  // half of the steps are calls of ranks that differ
  bool cut = false;        // deadlines end half of the calls, and ranks die in the middle
};

// Draws the program of a seed. A pure function.
Program draw(std::uint64_t seed, const Limits& limits);

// Joins programs of one group into one, in their order.
Program joined(const std::vector<Program>& programs);

// Write a program as C++ source, and as JSON for other languages.
std::string as_source(const Program& program, std::string_view why);
std::string as_json(const Program& program);

}  // namespace leeway::programs
