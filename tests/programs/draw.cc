// Draws a random program from a seed.
#include <algorithm>
#include <random>

#include "programs/program.h"

namespace leeway::programs {
namespace {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t part) : state_(seed * 0x9E3779B97F4A7C15u + part) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t value = (state_ ^ state_ >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
  }
  std::size_t below(std::size_t limit) { return next() % limit; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  int between(int from, int to) {
    return from + static_cast<int>(below(static_cast<std::size_t>(to - from) + 1));
  }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::uint64_t state_;
};

// Draws what all programs of one group have in common.
Program frame(std::uint64_t seed, const Limits& limits) {
  Dice dice(seed / kProgramsOfAGroup, 1);
  Program program;
  program.seed = seed;
  program.front = limits.front;
  program.route = static_cast<Route>(dice.below(kRouteCount));
  program.ranks = dice.pick({2, 2, 3, 3, 3, 4, 4, 5, 6});
  program.processes = dice.one_in(3);
  program.by_address = dice.one_in(2);
  if (!limits.any_route) program.route = limits.route;
  if (program.route == Route::mixed) program.processes = true;
  if (program.route == Route::inproc) program.processes = false;
  if (program.route == Route::sites || program.route == Route::mixed)
    program.ranks = dice.one_in(4) ? 6 : 4;
  if (program.front == Front::nccl && program.route == Route::sites) program.route = Route::udp;
  if (program.processes || program.front == Front::c) program.by_address = true;
  return program;
}

// A pause in us. It is a second longer than kSlack, the lateness of calls that judge.cc allows.
constexpr std::uint32_t kLateUs = 4'000'000;

// A pause in us. A destructor lets calls in progress end for 64 time-outs, and serves its peers for
// 4 s at least. The pause is well above the first and well below the second.
constexpr std::uint32_t kLongPastPatienceUs = 600'000;

// Number of messages to a late receiver. It is more than a rank keeps before it has posted a
// receive (limits::kEarlySlotsPerPeer).
constexpr int kLetters = 12;

class Maker {
 public:
  Maker(const Program& frame, const Limits& limits)
      : program_(frame), dice_(frame.seed, 2), easy_(dice_.one_in(2)), limits_(limits) {
    Comm world;
    for (int rank = 0; rank < frame.ranks; ++rank) world.members.push_back(rank);
    // Each program has tags of its own. Otherwise its receives could get messages of other
    // programs.
    world.tags += 100 * static_cast<std::uint32_t>(frame.seed % kProgramsOfAGroup);
    comms_.push_back(world);
  }

  Program make() {
    const int length = dice_.between(3, 14);
    // A rank dies in this program. All ranks must have finished the program before it, whose calls
    // may not fail.
    if (limits_.cut && leaves()) add(step(Kind::sync, 0));
    const bool makes = dice_.one_in(3);  // makes communicators
    const bool rude = dice_.one_in(limits_.cut ? 3 : 16) && !(limits_.cut && leaves());
    if (rude) make_comm();
    for (int i = 0; i < length; ++i) {
      const std::size_t what = any_quiet() ? dice_.below(100) : 99;
      if (limits_.differing && any_quiet() && dice_.one_in(2)) mismatch();
      if (makes && what < 12) {
        make_comm();
      } else if (what < 45) {
        messages();
      } else if (what < 48) {
        wrong();
      } else if (what == 52) {
        pause(soon());
      } else if (what == 53) {
        mismatch();
      } else if (what == 54) {
        fork();
      } else if (makes && what < 52) {
        destroy_everywhere();
      } else if (what < 55) {
        allocate();
      } else {
        collective();
      }
      if (is_late() && i == length / 2) be_late();
      if (rude && i == length / 2) disturb();
      if (leaves() && i == length / 2) leave();
    }
    if (says_farewell()) farewell();
    return std::move(program_);
  }

 private:
  struct Comm {
    std::vector<int> members;
    bool gone = false;
    bool disturbed = false;
    int allocation = -1;
    std::uint32_t tags = 100;  // next tag for a receive from any rank
  };

  int some_comm(bool quiet) {
    std::vector<int> choices;
    for (std::size_t i = 0; i < comms_.size(); ++i)
      if (!comms_[i].gone && !comms_[i].members.empty() && !(quiet && comms_[i].disturbed))
        choices.push_back(static_cast<int>(i));
    return choices[dice_.below(choices.size())];
  }
  // Returns true if some communicator still works; after a rank has left, there may be none.
  bool any_quiet() const {
    return std::any_of(comms_.begin(), comms_.end(), [](const Comm& one) {
      return !one.gone && !one.disturbed && !one.members.empty();
    });
  }
  bool nccl() const { return program_.front == Front::nccl; }
  Comm& at(int comm) { return comms_[static_cast<std::size_t>(comm)]; }
  int size_of(int comm) { return static_cast<int>(at(comm).members.size()); }

  Step step(Kind kind, int comm) {
    Step one;
    one.kind = kind;
    one.comm = comm;
    one.salt = static_cast<std::uint32_t>(dice_.next());
    one.may_fail = at(comm).disturbed;
    for (Way& way : one.ways) way = this->way();
    one.endless = !one.may_fail && dice_.one_in(2);
    if (limits_.cut && can_be_cut(kind) && dice_.one_in(2)) cut(one);
    return one;
  }
  static bool can_be_cut(Kind kind) {
    return is_collective(kind) || kind == Kind::message || kind == Kind::exchange;
  }
  // Draws a time of 50 us to 3 ms, so that it may end before, during or after a call.
  std::uint32_t soon() {
    return (50u << dice_.below(7)) + static_cast<std::uint32_t>(dice_.below(50));
  }
  // Gives the step short deadlines: on one rank, on all ranks alike, or on some by chance.
  void cut(Step& one) {
    const int size = size_of(one.comm);
    const std::size_t how = dice_.below(3);
    const auto alone = dice_.below(static_cast<std::size_t>(size));
    const std::uint32_t alike = soon();
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
      if (how == 1 || (how == 0 ? i == alone : dice_.one_in(2)))
        one.cuts_us[i] = how == 1 ? alike : soon();
  }
  Way way() {
    Way one;
    if (easy_ || dice_.one_in(2)) return one;
    one.how = static_cast<Way::How>(dice_.between(1, 4));
    one.later = static_cast<std::uint8_t>(dice_.pick({0, 1, 1, 2, 3, 20}));
    return one;
  }
  std::size_t count() {
    if (dice_.one_in(12)) return 0;
    const bool large = program_.route == Route::sites || program_.route == Route::lanes;
    const std::size_t octave = dice_.below(large ? 18 : dice_.one_in(12) ? 18 : 12);
    return (std::size_t{1} << octave) - (octave > 0 && dice_.one_in(3) ? dice_.below(2) : 0) +
           (dice_.one_in(3) ? dice_.below(std::size_t{1} << octave) : 0);
  }
  void add(Step one) { program_.steps.push_back(std::move(one)); }

  void collective() { collective(some_comm(false)); }
  void collective(int comm) {
    Step one = step(dice_.one_in(4) ? Kind::all_reduce : static_cast<Kind>(dice_.below(9)), comm);
    one.type = dice_.one_in(2) ? DataType::f32 : static_cast<DataType>(dice_.below(kDataTypeCount));
    one.op = dice_.one_in(2) ? ReduceOp::sum : static_cast<ReduceOp>(dice_.below(kReduceOpCount));
    if (is_floating(one.type) && one.op >= ReduceOp::band) one.op = ReduceOp::max;
    if (one.type == DataType::boolean &&
        (one.op == ReduceOp::avg || one.op == ReduceOp::premul_sum))
      one.op = ReduceOp::bxor;
    if (nccl() && one.kind == Kind::barrier) one.kind = Kind::all_reduce;
    if (nccl() && one.type == DataType::boolean) one.type = DataType::i32;
    if (nccl() && one.op >= ReduceOp::band) one.op = ReduceOp::max;
    one.count = count();
    one.root = static_cast<int>(dice_.below(at(comm).members.size()));
    one.in_place = dice_.one_in(2);
    if (one.kind == Kind::reduce || one.kind == Kind::all_to_all) one.in_place = false;
    if (one.kind == Kind::reduce_scatter || one.kind == Kind::all_gather ||
        one.kind == Kind::all_to_all) {
      one.uneven = !nccl() && dice_.one_in(3);
      one.displaced = one.uneven && dice_.one_in(2);
    }
    if (one.kind == Kind::all_reduce && at(comm).allocation >= 0 && dice_.one_in(2)) {
      one.allocation = at(comm).allocation;
      one.ways.fill(Way{});  // calls that use one memory come one after the other
    }
    const bool lossy = one.kind == Kind::all_reduce || one.kind == Kind::reduce ||
                       one.kind == Kind::reduce_scatter;
    const bool often = limits_.cut || program_.route == Route::faulted;
    if (lossy && !nccl() && dice_.one_in(often ? 2 : 6)) {
      one.delivery = dice_.one_in(2) ? Delivery::Kind::bounded : Delivery::Kind::best_effort;
      one.type = DataType::f32;
      one.op = dice_.one_in(2) ? ReduceOp::sum : ReduceOp::avg;
      one.estimator = static_cast<Estimator>(dice_.below(kEstimatorCount));
      one.uneven = one.displaced = false;
      if (limits_.cut) {
        const bool spreads = one.kind == Kind::all_reduce && dice_.one_in(2);
        if (spreads)
          one.spread = dice_.one_in(2) ? Delivery::Kind::bounded : Delivery::Kind::best_effort;
        one.confirm_use = dice_.one_in(4);
      }
      // Shards have up to a hundred datagrams, so that the true error varies little, and can be
      // compared with the reported one.
      if (program_.route == Route::faulted && dice_.one_in(2)) {
        one.kind = Kind::reduce_scatter;
        one.allocation = -1;
        one.count = std::size_t{1} << dice_.between(6, 15);
      }
    }
    add(std::move(one));
  }

  // Draws a message. Several messages may have the same tag, but a receive from any rank has a tag
  // of its own.
  Envelope envelope(int comm, bool to_itself) {
    Envelope one;
    const int size = size_of(comm);
    one.from = static_cast<int>(dice_.below(static_cast<std::size_t>(size)));
    one.to = to_itself ? static_cast<int>(dice_.below(static_cast<std::size_t>(size)))
                       : (one.from + dice_.between(1, size - 1)) % size;
    one.count = std::min<std::size_t>(count(), 20'000);
    if (dice_.one_in(4)) one.spare = dice_.below(100);
    one.tag = static_cast<std::uint32_t>(dice_.pick({0, 0, 0, 1, 7}));
    // A receive from any rank would wait until its deadline if a rank is gone, or if the sender's
    // deadline has passed. So disturbed communicators and programs with --cut have no such receive.
    if (dice_.one_in(5) && one.from != one.to && !at(comm).disturbed && !limits_.cut) {
      one.any = true;
      one.tag = at(comm).tags++;
    }
    if (nccl()) one.spare = one.tag = one.any = 0;
    return one;
  }

  // Makes an exchange one of 320 to 519 messages between two ranks, each with a tag of its own.
  // Most tags then wait for a turn (peer_messages.h). Most messages are so long that they wait
  // until the receiver reports its receive.
  void crowd(Step& one) {
    const Envelope first = one.messages[0];
    const int other = (first.from + 1) % size_of(one.comm);
    one.crossed = true;
    one.messages.resize(320 + one.salt / 8 % 200);
    for (std::size_t i = 0; i < one.messages.size(); ++i) {
      one.messages[i] = {
          .from = first.from,
          .to = other,
          .count = (i % 8 == 0 ? 8 : std::size_t{10'000}) / leeway::size_of(one.type),
          .tag = static_cast<std::uint32_t>(1'000'000 + i)};
      if (i % 6 == 5) std::swap(one.messages[i].from, one.messages[i].to);
    }
  }

  void messages() {
    const int comm = some_comm(false);
    if (size_of(comm) < 2) return collective();
    const bool several = dice_.one_in(3);
    Step one = step(several ? Kind::exchange : Kind::message, comm);
    one.type = dice_.one_in(2) ? DataType::f32 : static_cast<DataType>(dice_.below(kDataTypeCount));
    if (nccl() && one.type == DataType::boolean) one.type = DataType::u8;
    const int length = several ? dice_.between(1, 5) : 1;
    for (int i = 0; i < length; ++i) one.messages.push_back(envelope(comm, several));
    if (several && !nccl() && one.salt % 8 == 3) crowd(one);
    const bool unlike = !several && !nccl() && !limits_.cut && !at(comm).disturbed &&
                        one.messages[0].count > 0 && dice_.one_in(limits_.differing ? 4 : 40);
    if (unlike) {
      one.type = DataType::f32;
      Envelope& letter = one.messages[0];
      letter.too_long = program_.seed % 2 == 1;
      // A send of at most 64 KiB is done once it is copied. This one is longer, so its sender must
      // be told of the mismatch.
      if (letter.too_long) letter.count = std::max<std::size_t>(letter.count, 20'000);
      letter.unlike = !letter.too_long;
    }
    add(std::move(one));
  }

  // Returns true if the program ends with a farewell: a rank sends messages to a late rank, and all
  // ranks destroy the communicator, while a barrier still waits for the late rank. Sends of short
  // messages are done once they are copied, but the messages must arrive.
  bool says_farewell() const {
    return !limits_.cut && program_.front != Front::nccl && program_.seed % 64 == 5 &&
           !comms_[0].disturbed;
  }
  void farewell() {
    const int size = program_.ranks;
    Step part = step(Kind::split, 0);
    part.made = static_cast<int>(comms_.size());
    part.colors.assign(static_cast<std::size_t>(size), 0);
    part.keys.assign(static_cast<std::size_t>(size), 0);
    comms_.push_back({at(0).members, true, false, -1, 100});
    const int comm = part.made;
    add(std::move(part));
    const int from = static_cast<int>(dice_.below(static_cast<std::size_t>(size)));
    const int to = (from + dice_.between(1, size - 1)) % size;
    Step late = step(Kind::pause, comm);
    late.who = 1u << to;
    late.after_us = kLongPastPatienceUs;
    add(std::move(late));
    Step meet = step(Kind::barrier, comm);
    meet.may_fail = true;
    for (Way& way : meet.ways) way = {Way::How::waited, 20};
    add(std::move(meet));
    for (int i = 0; i < kLetters; ++i) {
      Step letter = step(Kind::message, comm);
      letter.type = DataType::f32;
      letter.ways = {};
      letter.messages = {{.from = from, .to = to, .count = 1 + dice_.below(100)}};
      add(std::move(letter));
    }
    Step end = step(Kind::destroy, comm);
    end.who = 0xFF;
    add(std::move(end));
  }

  void wrong() {
    const int comm = some_comm(true);
    Step one = step(Kind::wrong, comm);
    one.who = 0xFF;
    add(std::move(one));
  }

  void mismatch() {
    const int comm = some_comm(true);
    if (size_of(comm) < 2 || nccl()) return collective();
    Step one = step(Kind::mismatch, comm);
    one.who = 1u << dice_.below(at(comm).members.size());
    one.root = static_cast<int>(dice_.below(at(comm).members.size()));
    one.count = 1 + count();
    one.difference = static_cast<Difference>(dice_.below(kDifferences - 1));
    if (one.difference == Difference::count && one.salt % 2 == 1)
      one.difference = Difference::block;
    add(std::move(one));
  }

  int pause(std::uint32_t length_us) {
    const int comm = some_comm(true);
    Step one = step(Kind::pause, comm);
    one.who = 1u << dice_.below(at(comm).members.size());
    one.after_us = length_us;
    add(std::move(one));
    return comm;
  }

  // Returns true if be_late() is part of the program: with --cut, in one of 256. One rank then
  // comes to exact calls later than kSlack (judge.cc). A call behind them has a short deadline,
  // which must end that call although the exact calls still wait.
  bool is_late() const { return limits_.cut && program_.seed % 256 == 0; }
  void be_late() {
    const int comm = pause(kLateUs);
    for (int i = dice_.between(1, 3); i > 0; --i) {
      collective(comm);
      Step& one = program_.steps.back();
      one.delivery = Delivery::Kind::exact;
      one.spread = Delivery::Kind::exact;
      one.confirm_use = false;
      one.cuts_us = {};
      for (Way& way : one.ways) way = {Way::How::waited, 20};
    }
    collective(comm);
    Step& one = program_.steps.back();
    cut(one);
    one.ways = {};
  }

  void fork() {
    const int comm = some_comm(false);
    if (nccl()) return collective();
    Step one = step(Kind::fork, comm);
    one.who = 1u << dice_.below(at(comm).members.size());
    one.count = 1 + count();
    add(std::move(one));
  }

  void allocate() {
    if (program_.front != Front::cpp) return collective();
    const int comm = some_comm(true);
    Step one = step(Kind::allocate, comm);
    one.count = std::size_t{1} << dice_.between(0, 18);
    at(comm).allocation = static_cast<int>(program_.steps.size());
    add(std::move(one));
  }

  void make_comm() {
    if (comms_.size() > 6) return collective();
    const std::size_t what = dice_.below(10);
    const bool fresh = what < 2 && !at(0).disturbed;
    const int parent = fresh ? 0 : some_comm(true);
    Step one = step(fresh ? Kind::create : what < 8 ? Kind::split : Kind::shrink, parent);
    if (one.kind == Kind::create && program_.route == Route::inproc) one.kind = Kind::split;
    one.made = static_cast<int>(comms_.size());
    const std::vector<int> members = at(parent).members;
    const std::size_t size = members.size();
    if (one.kind == Kind::create) {
      comms_.push_back({members, false, false, -1, 100});
    } else if (one.kind == Kind::shrink) {
      // Excludes one rank at most, because other communicators still need the ranks.
      if (size < 2) return collective();
      const std::size_t out = dice_.below(size);
      one.who = 1u << out;
      std::vector<int> left = members;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(out));
      comms_.push_back({left, false, false, -1, 100});
    } else {
      const int colors = dice_.between(1, 2);
      for (std::size_t i = 0; i < size; ++i) {
        one.colors.push_back(dice_.one_in(6) ? -1 : dice_.between(0, colors - 1));
        one.keys.push_back(dice_.between(-2, 2));
      }
      program_.steps.push_back(one);
      const Groups groups(program_);
      for (int color = 0; color <= *std::max_element(one.colors.begin(), one.colors.end()); ++color)
        comms_.push_back({groups.of(one.made + color), false, false, -1, 100});
      return;
    }
    add(std::move(one));
  }

  void destroy_everywhere() {
    const int comm = some_comm(false);
    if (comm == 0) return collective();
    Step one = step(Kind::destroy, comm);
    one.who = 0xFF;
    at(comm).gone = true;
    // Calls in progress on a destroyed communicator may end in any way.
    for (Step& before : program_.steps)
      if (before.comm == comm && is_under_way(before)) before.may_fail = true;
    add(std::move(one));
  }
  static bool is_under_way(const Step& step) {
    return std::any_of(step.ways.begin(), step.ways.end(),
                       [](const Way& way) { return way.how != Way::How::blocking; });
  }

  // One rank aborts or destroys its communicator, while the others go on to use theirs. Later calls
  // of the others may end in any way, and so may earlier calls that some rank has not finished.
  void disturb() {
    const int comm = some_comm(true);
    if (comm == 0 || size_of(comm) < 2) return;
    const bool aborts = dice_.one_in(2);
    const bool parent =
        std::any_of(program_.steps.begin(), program_.steps.end(),
                    [&](const Step& before) { return before.comm == comm && before.made > 0; });
    const bool quiet = parent || dice_.one_in(2);
    if (quiet) {
      Step one = step(Kind::sync, comm);
      add(std::move(one));
    }
    for (Step& before : program_.steps)
      if (before.comm == comm && (is_under_way(before) || (aborts && !quiet)))
        before.may_fail = true;
    at(comm).disturbed = true;
    Step one = step(aborts ? Kind::abort : Kind::destroy, comm);
    one.who = 1u << dice_.below(at(comm).members.size());
    if (limits_.cut && aborts && !quiet) one.after_us = soon();
    const unsigned who = one.who;
    add(std::move(one));
    if (size_of(comm) < 3 || !dice_.one_in(2)) return;
    Step rest = step(Kind::shrink, comm);
    rest.may_fail = false;
    rest.who = who;
    rest.made = static_cast<int>(comms_.size());
    std::vector<int> left;
    for (int i = 0; i < size_of(comm); ++i)
      if ((who >> i & 1) == 0) left.push_back(at(comm).members[static_cast<std::size_t>(i)]);
    comms_.push_back({left, false, false, -1, 100});
    add(std::move(rest));
  }

  // Returns true if this program is the last one of its group, and a rank leaves in it. Without
  // --cut, a process exits, in every second group. With --cut, in every group a process is killed,
  // or a thread aborts or destroys its communicator.
  bool leaves() const {
    const std::uint64_t group = program_.seed / kProgramsOfAGroup;
    return (limits_.cut || (program_.processes && group % 2 == 0)) &&
           program_.seed % kProgramsOfAGroup == kProgramsOfAGroup - 1;
  }
  void leave() {
    if (!limits_.cut) {
      Step meet = step(Kind::sync, 0);
      add(std::move(meet));
    }
    for (Step& before : program_.steps)
      if (limits_.cut || is_under_way(before)) before.may_fail = before.kind != Kind::sync;
    // A thread only leaves communicator 0, and stays in the others.
    const bool exits = program_.processes;
    for (std::size_t i = 0; i < comms_.size(); ++i)
      if (exits || i == 0) comms_[i].disturbed = true;
    Step one = step(exits ? Kind::leave : dice_.one_in(4) ? Kind::destroy : Kind::abort, 0);
    if (limits_.cut && one.kind != Kind::destroy) one.after_us = soon();
    one.who = 1u << dice_.below(static_cast<std::size_t>(program_.ranks));
    const unsigned who = one.who;
    add(std::move(one));
    Step rest = step(Kind::shrink, 0);
    rest.may_fail = false;
    rest.who = who;
    rest.made = static_cast<int>(comms_.size());
    std::vector<int> left;
    for (int i = 0; i < program_.ranks; ++i)
      if ((who >> i & 1) == 0) left.push_back(i);
    comms_.push_back({left, false, false, -1, 100});
    add(std::move(rest));
  }

  Program program_;
  Dice dice_;
  const bool easy_;  // all calls block
  const Limits& limits_;
  std::vector<Comm> comms_;
};

}  // namespace

Program draw(std::uint64_t seed, const Limits& limits) {
  return Maker(frame(seed, limits), limits).make();
}

}  // namespace leeway::programs
