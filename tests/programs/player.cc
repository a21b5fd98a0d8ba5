#include "programs/player.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "programs/underway.h"

namespace leeway::programs {
namespace {

using testing::TypedTensor;

}  // namespace

Player::Player(Board& board, Library& library, const Meeting& meeting, int rank)
    : board_(board), library_(library), meeting_(meeting), rank_(rank) {}

Player::~Player() = default;

Options options_for(const Program& program, const Meeting& meeting, int rank) {
  Options options;
  options.rank = rank;
  options.world_size = program.ranks;
  options.store = meeting.store;
  if (meeting.store == nullptr) options.rendezvous = meeting.address;
  options.bind_address = "127.0.0.1";
  options.communicator_name = meeting.name;
  options.log_level = meeting.log_level;
  options.peer_timeout = std::chrono::seconds(3);
  options.seed = program.seed;
  options.transport = TransportKind::udp;
  switch (program.route) {
    case Route::automatic:
    case Route::inproc:
      options.transport = TransportKind::automatic;
      break;
    case Route::near:
    case Route::shm:
      options.transport = TransportKind::shm;
      break;
    case Route::mixed:
      options.transport = TransportKind::mixed;
      break;
    case Route::udp:
      break;
    case Route::sites:
      options.site = rank < program.ranks / 2 ? "east" : "west";
      break;
    case Route::lanes:
      options.lanes = 2;
      break;
    case Route::sealed:
      options.secret = kSecret;
      break;
    case Route::faulted:
      options.faults.loss = 0.05;
      options.faults.burst = program.seed % 2 == 0 ? 1.0 : 4.0;
      options.faults.duplicate = 0.02;
      options.faults.reorder = 0.05;
      options.faults.corrupt = 0.01;
      options.faults.seed = program.seed + 1;
      break;
  }
  return options;
}

bool Player::fail(const std::string& why) {
  board_.fail(number_, at_, rank_, why);
  return false;
}

bool Player::begin(const Program& program) {
  if (world_ != nullptr) return true;
  auto made = library_.create(options_for(program, meeting_, rank_), Way::How::blocking);
  if (!made.ok()) return fail(std::string("create() of the group: ") + made.status().c_str());
  world_ = std::move(*made);
  if (program.route != Route::shm) return true;
  auto part = world_->split(0, rank_, Way::How::blocking);
  if (!part.ok()) return fail(std::string("split() of the group: ") + part.status().c_str());
  made_world_ = std::move(world_);
  world_ = std::move(*part);
  made_world_.reset();
  return true;
}

Comm* Player::comm(int number) {
  if (number == 0) return world_.get();
  const auto found = comms_.find(number);
  return found == comms_.end() ? nullptr : found->second.get();
}

void Player::destroy(int number) {
  go_from(number);
  ends_.clear();
  comms_.erase(number);
  move();
}

bool Player::play(const Program& program, int number) {
  const Groups groups(program);
  program_ = &program;
  groups_ = &groups;
  number_ = number;
  Board::Line& line = board_.lines[static_cast<std::size_t>(rank_)];
  line.program = static_cast<std::uint32_t>(number);
  for (at_ = 0; at_ < static_cast<int>(program.steps.size()); ++at_) {
    line.step = static_cast<std::uint32_t>(at_);
    move();
    if (!settle_due(false)) return false;
    if (!perform(program.steps[static_cast<std::size_t>(at_)])) return false;
    if (board_.failed != 0) return false;
  }
  line.step = static_cast<std::uint32_t>(at_);
  if (!settle_due(true)) return false;
  // Ranks destroy the remaining communicators in different orders.
  std::vector<int> left;
  for (const auto& [comm, object] : comms_) left.push_back(comm);
  std::rotate(left.begin(),
              left.begin() +
                  (left.empty() ? 0
                                : static_cast<std::ptrdiff_t>(
                                      (program.seed + static_cast<unsigned>(rank_)) % left.size())),
              left.end());
  while (dying_) ::pause();
  for (const int comm : left) destroy(comm);
  allocations_.clear();
  return board_.failed == 0;
}

bool Player::perform(const Step& step) {
  if (step.kind == Kind::sync) {
    ::pthread_barrier_wait(&board_.barrier);
    return true;
  }
  const std::vector<int>& members = groups_->of(step.comm);
  const auto self = std::find(members.begin(), members.end(), rank_);
  if (self == members.end()) return true;
  const int rank = static_cast<int>(self - members.begin());
  const int size = static_cast<int>(members.size());
  Comm* const on = comm(step.comm);
  if (on == nullptr) return true;  // destroyed
  const bool knows = program_->front != Front::nccl || on->rank() >= 0;
  if (knows && (on->rank() != rank || on->size() != size))
    return fail("communicator " + std::to_string(step.comm) + " says rank " +
                std::to_string(on->rank()) + " of " + std::to_string(on->size()) + ", not " +
                std::to_string(rank) + " of " + std::to_string(size));
  const bool among = (step.who >> rank & 1) != 0;
  switch (step.kind) {
    case Kind::pause:
      if (among) std::this_thread::sleep_for(std::chrono::microseconds(step.after_us));
      return true;
    case Kind::split:
    case Kind::create:
    case Kind::shrink:
    case Kind::allocate:
      return make(step, rank, size);
    case Kind::destroy:
      if (among) destroy(step.comm);
      return true;
    case Kind::abort:
      if (!among) return true;
      go_from(step.comm);
      end_later(step, [on] { on->abort(); });
      return true;
    case Kind::leave:
      if (!among) return true;
      board_.left |= 1 << rank_;
      if (step.after_us > 0) {
        dying_ = true;
        end_later(step, [] { ::kill(::getpid(), SIGKILL); });
        return true;
      }
      if (step.salt % 2 == 0) {
        // The join is never destroyed, so that exit() may find it at any point of joining.
        Options options = options_for(*program_, meeting_, rank_);
        options.communicator_name += ".never";
        static auto& joining = *new std::shared_ptr<void>(library_.join(options));
        (void)joining;
        if (step.salt / 6 % 2 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(step.salt / 12 % 5'000));
      }
      if (step.salt % 6 < 2) ::kill(::getpid(), SIGKILL);
      if (step.salt % 6 < 3) ::_exit(0);
      std::exit(0);
    case Kind::wrong: {
      if (!among) return true;
      Call one;
      one.step = &step;
      one.rank = rank;
      one.size = size;
      const Outcome outcome = on->run(one);
      if (outcome.ok()) return fail("a call with wrong arguments is ok");
      const StatusCode code = outcome.status().code();
      if (step.may_fail || code == StatusCode::kInvalidArgument || code == StatusCode::kUnsupported)
        return true;
      return fail(std::string("a call with wrong arguments: ") + outcome.status().c_str());
    }
    case Kind::mismatch:
      return differ(step, rank, size);
    case Kind::fork:
      return !among || fork_child(step, rank, size);
    default:
      return call(step, rank, size);
  }
}

bool Player::differ(const Step& step, int rank, int size) {
  auto one = underway(step, rank, size);
  const bool among = (step.who >> rank & 1) != 0;
  one->plain = std::make_unique<PlainCall>(differing(step, among), rank, size);
  const Call& call = one->plain->call;
  return start(std::move(one), call);
}

// Forks. Calls in the child must return at once, and the parent must go on.
bool Player::fork_child(const Step& step, int rank, int size) {
  const int child = ::fork();
  if (child < 0) return fail(std::string("fork(): ") + std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string fault = fault_of_child(step, rank, size);
    if (!fault.empty()) fail("in a forked child: " + fault);
    ::_exit(0);
  }
  int outcome = 0;
  while (::waitpid(child, &outcome, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  move();
  if (outcome != 0) return fail("a forked child dies: " + std::to_string(outcome));
  return board_.failed == 0;
}

std::string Player::fault_of_child(const Step& step, int rank, int size) {
  Step own = step;
  own.kind = Kind::all_reduce;
  own.in_place = false;
  const PlainCall plain(own, rank, size);
  const Outcome blocking = comm(step.comm)->run(plain.call);
  if (blocking.ok()) return "a call is ok";
  if (blocking.status().code() != StatusCode::kUnavailable) return blocking.status().c_str();
  if (comm(step.comm)->start(plain.call)->wait().ok()) return "a call in flight is ok";
  for (const auto& under : underway_) {
    if (under->flight == nullptr || under->how == Way::How::called) continue;
    if (!under->flight->test()) return "what the parent has in flight is not over";
    (void)under->flight->wait();  // the call may have been done already
  }
  if (comm(step.comm)->split(0, 0, step.ways[static_cast<std::size_t>(rank)].how).ok())
    return "split() is ok";
  comm(step.comm)->abort();
  comms_.clear();
  return {};
}

bool Player::make(const Step& step, int rank, int size) {
  Comm* const on = comm(step.comm);
  const auto self = static_cast<std::size_t>(rank);
  const Way::How how = step.ways[self].how;
  const int made_number = Groups::made(step, rank, size);
  Status status;
  std::unique_ptr<Comm> made;
  const auto take = [&](Result<std::unique_ptr<Comm>> result) {
    if (!result.ok()) {
      status = result.status();
    } else {
      made = std::move(*result);
    }
  };
  if (step.kind == Kind::allocate) {
    const auto memory = on->allocate(step.count);
    if (!memory.ok()) status = memory.status();
    if (memory.ok()) {
      if (memory->size() < step.count) return fail("allocate() gave less than was asked for");
      allocations_[at_] = *memory;
    }
  } else if (step.kind == Kind::split) {
    take(on->split(step.colors[self], step.keys[self], how));
  } else if (step.kind == Kind::shrink) {
    if (made_number < 0) return true;
    std::vector<Rank> excluded;
    for (int one = 0; one < size; ++one)
      if ((step.who >> one & 1) != 0) excluded.push_back(static_cast<Rank>(one));
    take(on->shrink(excluded, how));
  } else {
    Options options = options_for(*program_, meeting_, rank_);
    options.communicator_name += "." + std::to_string(number_) + "." + std::to_string(step.made);
    take(library_.create(options, how));
  }
  move();
  if (!status.ok()) {
    if (!step.may_fail) return fail(std::string(to_string(step.kind)) + ": " + status.c_str());
    return true;
  }
  if (step.kind == Kind::allocate) return true;
  if ((made != nullptr) != (made_number >= 0))
    return fail(std::string(to_string(step.kind)) + " made a communicator for the wrong ranks");
  if (made != nullptr) comms_[made_number] = std::move(made);
  return true;
}

// Calls `end` at once, or after step.after_us on another thread, during the rank's next steps.
void Player::end_later(const Step& step, std::function<void()> end) {
  if (step.after_us == 0) return end();
  ends_.emplace_back([after = std::chrono::microseconds(step.after_us), end = std::move(end)] {
    std::this_thread::sleep_for(after);
    end();
  });
}

void Player::end() {
  go_from(0);
  ends_.clear();
  world_.reset();
}

void Player::go_from(int comm) {
  if (static_cast<std::size_t>(comm) >= kCommsMax) return;
  const std::size_t program = comm == 0 ? 0 : static_cast<std::size_t>(number_);
  board_.gone[program * kCommsMax + static_cast<std::size_t>(comm)] |= 1u << rank_;
}

unsigned Player::gone_from(int comm) const {
  if (static_cast<std::size_t>(comm) >= kCommsMax) return ~0u;
  const std::size_t program = comm == 0 ? 0 : static_cast<std::size_t>(number_);
  return static_cast<unsigned>(board_.left) |
         board_.gone[program * kCommsMax + static_cast<std::size_t>(comm)];
}

std::unique_ptr<Underway> Player::underway(const Step& step, int rank, int size) const {
  auto one = std::make_unique<Underway>();
  one->step = &step;
  one->number = at_;
  one->rank = rank;
  one->size = size;
  const Way& way = step.ways[static_cast<std::size_t>(rank)];
  one->how = way.how;
  one->due = at_ + way.later;
  return one;
}

bool Player::call(const Step& step, int rank, int size) {
  auto one = underway(step, rank, size);
  const std::size_t element = size_of(step.type);
  const std::size_t shift = step.salt % 4 * element;
  Call& call = one->call;
  call.step = &step;
  call.rank = rank;
  call.size = size;
  call.extent = &one->extent;
  if (step.kind == Kind::message || step.kind == Kind::exchange) {
    for (const std::size_t i : order_of_messages(step, rank)) {
      const Envelope& letter = step.messages[i];
      if (letter.from == rank) {
        const TypedTensor content = message_of(step, i);
        Buffer& part = one->parts.emplace_back(letter.count * element, shift);
        if (letter.count > 0)
          std::memcpy(part.data(), content.bytes().data(), content.bytes().size());
        one->envelopes.push_back(i);
        call.messages.push_back(Message::send({part.data(), letter.count, step.type},
                                              static_cast<Rank>(letter.to), letter.tag));
      }
      if (letter.to == rank) {
        const std::size_t room = letter.room();
        Buffer& part = one->parts.emplace_back(room * element, shift);
        one->envelopes.push_back(i);
        call.messages.push_back(
            Message::recv({part.data(), room, letter.unlike ? kUnlike : step.type},
                          letter.any ? kAnyRank : static_cast<Rank>(letter.from), letter.tag));
      }
    }
    if (call.messages.empty()) return true;
  } else if (step.kind != Kind::barrier) {
    one->extent = extent_of(step, rank, size);
    one->sent = input_of(step, rank, size);
    const std::size_t in_bytes = one->extent.input * element;
    const std::size_t out_bytes = one->extent.output * element;
    const auto memory = allocations_.find(step.allocation);
    const bool allocated = memory != allocations_.end() && step.kind == Kind::all_reduce &&
                           in_bytes + out_bytes <= memory->second.size();
    const auto self = static_cast<std::size_t>(rank);
    const bool gathers =
        step.kind == Kind::all_gather || (step.kind == Kind::gather && rank == step.root);
    const bool scatters =
        step.kind == Kind::reduce_scatter || (step.kind == Kind::scatter && rank == step.root);
    const auto begin = [&](const std::vector<std::size_t>& begins) {
      return (begins.empty() ? self * step.count : begins[self]) * element;
    };
    if (allocated) {
      one->in = memory->second.data();
      one->out = step.in_place ? one->in : one->in + in_bytes;
    } else if (step.kind == Kind::broadcast || (step.in_place && step.kind == Kind::all_reduce)) {
      one->output = Buffer(out_bytes, shift);
      one->in = one->out = one->output.data();
    } else if (step.in_place && gathers) {
      one->output = Buffer(out_bytes, shift);
      one->out = one->output.data();
      one->in = one->out + begin(one->extent.output_begins);
    } else if (step.in_place && scatters) {
      one->input = Buffer(in_bytes, shift);
      one->in = one->input.data();
      one->out = one->in + begin(one->extent.input_begins);
    } else {
      one->input = Buffer(in_bytes, shift);
      one->output = Buffer(out_bytes, shift);
      one->in = one->input.data();
      one->out = one->output.data();
    }
    if (in_bytes > 0) std::memcpy(one->in, one->sent.bytes().data(), in_bytes);
    call.input = {one->in, one->extent.input, step.type};
    call.output = {one->out, one->extent.output, step.type};
    if (step.is_lossy()) one->before = copy_of(step.type, one->out, one->extent.output);
  }
  if (static_cast<std::size_t>(at_) < kStepsMax)
    board_.came[static_cast<std::size_t>(number_) * kStepsMax + static_cast<std::size_t>(at_)] |=
        1u << rank_;
  return start(std::move(one), call);
}

bool Player::start(std::unique_ptr<Underway> one, const Call& call) {
  Comm& on = *comm(one->step->comm);
  one->begun = std::chrono::steady_clock::now();
  board_.lines[static_cast<std::size_t>(rank_)].waits_for = static_cast<std::uint32_t>(at_) + 1;
  if (one->how == Way::How::blocking) {
    const Outcome outcome = on.run(call);
    move();
    return judge(*one, outcome);
  }
  one->flight = on.start(call);
  if (one->how == Way::How::called) {
    one->flight->on_done([self = one.get()] {
      auto outcome = std::make_unique<Outcome>(self->flight->wait());
      const std::lock_guard lock(self->mutex);
      self->outcome = std::move(outcome);
      self->told.notify_all();
    });
  }
  underway_.push_back(std::move(one));
  return true;
}

bool Player::settle_due(bool all) {
  // If several calls are due at the same step, the rank waits for them in a random order.
  std::vector<std::unique_ptr<Underway>> due;
  for (auto& one : underway_)
    if (all || one->due <= at_) due.push_back(std::move(one));
  underway_.erase(std::remove(underway_.begin(), underway_.end(), nullptr), underway_.end());
  std::sort(due.begin(), due.end(), [this](const auto& a, const auto& b) {
    const auto key = [this](const Underway& one) {
      return (one.step->salt ^ static_cast<unsigned>(rank_)) * 2654435761u;
    };
    return key(*a) < key(*b);
  });
  for (auto& one : due)
    if (!settle(*one)) return false;
  return true;
}

bool Player::settle(Underway& one) {
  board_.lines[static_cast<std::size_t>(rank_)].waits_for =
      static_cast<std::uint32_t>(one.number) + 1;
  switch (one.how) {
    case Way::How::polled:
      while (!one.flight->test()) std::this_thread::sleep_for(std::chrono::microseconds(20));
      break;
    case Way::How::patient:
      while (!one.flight->wait_for(std::chrono::milliseconds(1))) {
      }
      break;
    case Way::How::called: {
      std::unique_lock lock(one.mutex);
      one.told.wait(lock, [&] { return one.outcome != nullptr; });
      lock.unlock();
      move();
      return judge(one, *one.outcome);
    }
    default:
      break;
  }
  const Outcome outcome = one.flight->wait();
  move();
  return judge(one, outcome);
}

}  // namespace leeway::programs
