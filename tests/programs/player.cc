#include "programs/player.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace leeway::programs {
namespace {

using testing::TypedTensor;

constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xA5};
constexpr std::byte kEmptyByte{0x00};

// Memory with a guard on either side.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t bytes, std::size_t shift)
      : bytes_(bytes), shift_(shift), memory_(bytes + 2 * kGuard + shift + kGuard, kGuardByte) {
    std::fill_n(data(), bytes_, kEmptyByte);
  }
  std::byte* data() {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (kGuard - begin % kGuard) + kGuard + shift_;
  }
  bool whole() {
    if (memory_.empty()) return true;
    const std::byte* const from = data();
    const std::byte* const to = from + bytes_;
    const std::byte* const end = memory_.data() + memory_.size();
    const auto is_guard = [](std::byte one) { return one == kGuardByte; };
    return std::all_of(from - kGuard, from, is_guard) && std::all_of(to, end, is_guard);
  }

 private:
  std::size_t bytes_ = 0;
  std::size_t shift_ = 0;
  std::vector<std::byte> memory_;
};

TypedTensor copy_of(DataType type, const void* data, std::size_t count) {
  TypedTensor tensor(type, count);
  if (count > 0) std::memcpy(tensor.view().data, data, count * size_of(type));
  return tensor;
}

std::uint64_t digest_of(ByteSpan bytes) {
  std::uint64_t digest = 1469598103934665603u;
  for (const std::byte one : bytes)
    digest = (digest ^ static_cast<std::uint64_t>(one)) * 1099511628211u;
  return digest | 1;
}

// Up to here the estimate of a variance may come out below 0.
constexpr std::size_t kFewElements = 4096;

// What is wrong with a report, whatever happened.
std::string contradiction(const Step& step, const CollectiveReport& report) {
  const auto is_part = [](double value) { return value >= 0.0 && value <= 1.0; };
  if (!is_part(report.loss)) return "loss is " + std::to_string(report.loss);
  if (!is_part(report.loss_first_pass))
    return "loss_first_pass is " + std::to_string(report.loss_first_pass);
  for (const PeerReport& peer : report.peers) {
    if (peer.arrived > peer.expected)
      return "more arrived of rank " + std::to_string(peer.rank) + " than was expected";
    if (peer.repaired > peer.arrived)
      return "more was repaired of rank " + std::to_string(peer.rank) + " than arrived";
  }
  std::uint64_t packets = 0;
  double contributions = 0.0;
  for (std::size_t k = 0; k < report.contributors.histogram.size(); ++k) {
    packets += report.contributors.histogram[k];
    contributions += static_cast<double>(k * report.contributors.histogram[k]);
  }
  if (packets > 0 &&
      std::abs(contributions / static_cast<double>(packets) - report.contributors.mean) > 1e-6)
    return "the mean of contributors is not that of their histogram";
  // NaN: not measured. Below 0: an unbiased estimate of few elements.
  if (std::isinf(report.variance_estimate) ||
      (report.variance_estimate < 0.0 && step.count > kFewElements))
    return "variance_estimate is " + std::to_string(report.variance_estimate);
  if (step.delivery != Delivery::Kind::exact) return {};
  if (report.loss != 0.0) return "an exact call with loss " + std::to_string(report.loss);
  if (report.elements_missing != 0) return "an exact call with elements_missing";
  if (report.deadline_cut) return "an exact call that was cut by its deadline";
  if (!report.complete) return "an exact call that is not complete";
  return {};
}

// A call of zeros, whose result nobody looks at.
struct PlainCall {
  PlainCall(const Step& step, int rank, int size)
      : values(step.count * static_cast<std::size_t>(size)),
        results(step.count * static_cast<std::size_t>(size)),
        extent(extent_of(step, rank, size)) {
    const auto elements = [&](bool whole) {
      return whole ? step.count * static_cast<std::size_t>(size) : step.count;
    };
    call.step = &step;
    call.rank = rank;
    call.size = size;
    call.extent = &extent;
    call.input = {values.data(),
                  elements(step.kind == Kind::reduce_scatter || step.kind == Kind::all_to_all),
                  step.type};
    call.output = {results.data(),
                   elements(step.kind == Kind::all_gather || step.kind == Kind::all_to_all),
                   step.type};
  }
  std::vector<double> values;
  std::vector<double> results;
  Extent extent;
  Call call;
};

}  // namespace

struct Player::Underway {
  const Step* step = nullptr;
  int number = 0;  // of the step
  int rank = 0;
  int size = 1;
  int due = 0;
  Way::How how = Way::How::blocking;
  Extent extent;
  Buffer input;
  Buffer output;
  TypedTensor sent;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<Buffer> parts;  // of messages
  std::vector<std::size_t> envelopes;
  Call call;
  std::unique_ptr<Flight> flight;
  // Of a callback.
  std::mutex mutex;
  std::condition_variable told;
  std::unique_ptr<Outcome> outcome;
};

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
  // Ranks destroy what is left in different orders.
  std::vector<int> left;
  for (const auto& [comm, object] : comms_) left.push_back(comm);
  std::rotate(left.begin(),
              left.begin() +
                  (left.empty() ? 0
                                : static_cast<std::ptrdiff_t>(
                                      (program.seed + static_cast<unsigned>(rank_)) % left.size())),
              left.end());
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
    case Kind::split:
    case Kind::create:
    case Kind::shrink:
    case Kind::allocate:
      return make(step, rank, size);
    case Kind::destroy:
      if (among) destroy(step.comm);
      return true;
    case Kind::abort:
      if (among) on->abort();
      return true;
    case Kind::leave:
      if (!among) return true;
      board_.left |= 1 << rank_;
      if (step.salt % 2 == 0) {
        // It may be at any point of a join then, which nobody takes back.
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

// All ranks are told that they differ, and what they do next goes well.
bool Player::differ(const Step& step, int rank, int size) {
  const bool among = (step.who >> rank & 1) != 0;
  const Step own = differing(step, among);
  const PlainCall plain(own, rank, size);
  const Outcome outcome = comm(step.comm)->run(plain.call);
  move();
  const std::string what =
      std::string(to_string(own.kind)) + " that differs in " + to_string(step.difference).data();
  if (outcome.ok()) return fail(what + " is ok");
  const bool refused = among && step.difference == Difference::refused;
  if (outcome.status().code() == (refused ? StatusCode::kUnsupported : StatusCode::kMismatch))
    return true;
  return fail(what + ": " + outcome.status().c_str());
}

// No call in the child stands still, and the parent goes on.
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
    (void)under->flight->wait();  // it may have been done
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

bool Player::call(const Step& step, int rank, int size) {
  auto one = std::make_unique<Underway>();
  one->step = &step;
  one->number = at_;
  one->rank = rank;
  one->size = size;
  const Way& way = step.ways[static_cast<std::size_t>(rank)];
  one->how = way.how;
  one->due = at_ + way.later;
  const std::size_t element = size_of(step.type);
  const std::size_t shift = step.salt % 4 * element;
  Call& call = one->call;
  call.step = &step;
  call.rank = rank;
  call.size = size;
  call.extent = &one->extent;
  if (step.kind == Kind::message || step.kind == Kind::exchange) {
    for (std::size_t i = 0; i < step.messages.size(); ++i) {
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
        const std::size_t room = letter.count + letter.spare;
        Buffer& part = one->parts.emplace_back(room * element, shift);
        one->envelopes.push_back(i);
        call.messages.push_back(
            Message::recv({part.data(), room, step.type},
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
  }
  board_.lines[static_cast<std::size_t>(rank_)].waits_for = static_cast<std::uint32_t>(at_) + 1;
  if (way.how == Way::How::blocking) {
    const Outcome outcome = comm(step.comm)->run(call);
    move();
    return judge(*one, outcome);
  }
  one->flight = comm(step.comm)->start(call);
  if (way.how == Way::How::called) {
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
  // Those of one moment in an order of their own.
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

// The result of a reduce_scatter is the rank's shard, of which its report speaks.
void Player::note_error(const Underway& one, const CollectiveReport& report,
                        const TypedTensor& got) {
  if (report.loss == 0.0 || std::isnan(report.variance_estimate)) return;
  TypedTensor wanted(one.step->type, got.count());
  expect(*one.step, one.rank, one.size, wanted);
  double squares = 0.0;
  for (std::size_t i = 0; i < got.count(); ++i)
    squares += (got.get(i) - wanted.get(i)) * (got.get(i) - wanted.get(i));
  squares /= static_cast<double>(got.count());
  Board::Error& error = board_.errors[static_cast<std::size_t>(one.step->estimator)];
  const double difference = report.variance_estimate - squares;
  ++error.calls;
  error.said += report.variance_estimate;
  error.true_square += squares;
  error.difference_square += difference * difference;
}

bool Player::judge(Underway& one, const Outcome& outcome) {
  const Step& step = *one.step;
  at_ = std::max(at_, one.number);
  const auto wrong = [&](const std::string& why) {
    board_.fail(number_, one.number, rank_, std::string(to_string(step.kind)) + ": " + why);
    return false;
  };
  if (!one.input.whole() || !one.output.whole()) return wrong("memory beside a tensor is spoilt");
  if (!outcome.ok()) {
    if (outcome.status().text().empty()) return wrong("an error without a text");
    if (!step.may_fail) return wrong(outcome.status().c_str());
    switch (outcome.status().code()) {
      case StatusCode::kPeerLost:
      case StatusCode::kCancelled:
      case StatusCode::kUnavailable:
      case StatusCode::kDeadlineExceeded:
        return true;
      default:
        return wrong(std::string("after a rank left: ") + outcome.status().c_str());
    }
  }
  const std::string odd = contradiction(step, *outcome);
  if (!odd.empty()) return wrong("the report: " + odd);
  for (std::size_t i = 0; i < one.call.messages.size(); ++i) {
    const Message& message = one.call.messages[i];
    const Envelope& letter = step.messages[one.envelopes[i]];
    if (!one.parts[i].whole()) return wrong("memory beside a message is spoilt");
    if (i < outcome->messages.size()) {
      const MessageReport& said = outcome->messages[i];
      if (said.source != letter.from || said.count != letter.count || said.tag != letter.tag)
        return wrong("the report of message " + std::to_string(i) + " says " +
                     std::to_string(said.count) + " elements of rank " +
                     std::to_string(said.source));
    } else {
      return wrong("the report lacks message " + std::to_string(i));
    }
    if (message.kind == Message::Kind::send) continue;
    // Beyond what was sent the memory stays as it was.
    TypedTensor wanted(step.type, letter.count + letter.spare);
    const TypedTensor content = message_of(step, one.envelopes[i]);
    if (letter.count > 0)
      std::memcpy(wanted.view().data, content.bytes().data(), content.bytes().size());
    const std::string odd_part =
        difference(step, copy_of(step.type, message.output.data, wanted.count()), wanted);
    if (!odd_part.empty())
      return wrong("from rank " + std::to_string(letter.from) + " " + odd_part);
  }
  if (!is_collective(step.kind) || step.kind == Kind::barrier) return true;
  const TypedTensor got = copy_of(step.type, one.out, one.extent.output);
  if (step.delivery == Delivery::Kind::exact) {
    TypedTensor wanted(step.type, one.extent.output);
    expect(step, one.rank, one.size, wanted);
    const std::string odd_part = difference(step, got, wanted);
    if (!odd_part.empty()) return wrong(odd_part);
  } else {
    // (A control variate may take more away than there is.)
    const bool below = step.estimator == Estimator::augmented;
    for (std::size_t i = 0; i < got.count(); ++i)
      if (!std::isfinite(got.get(i)) || (got.get(i) < 0.0 && !below))
        return wrong("element " + std::to_string(i) + " is " + std::to_string(got.get(i)));
    if (step.kind == Kind::reduce_scatter && !step.may_fail) note_error(one, *outcome, got);
  }
  if (!step.in_place && step.kind != Kind::broadcast &&
      copy_of(step.type, one.in, one.extent.input) != one.sent)
    return wrong("the input has changed");
  const bool alike = step.kind == Kind::all_reduce || step.kind == Kind::broadcast;
  // (Of a lossy call that its deadline ended, elements may be missing.)
  if (alike && outcome->complete && static_cast<std::size_t>(number_) < kProgramsOfAGroup &&
      static_cast<std::size_t>(one.number) < kStepsMax) {
    // Ranks of other communicators of the same split() have other results.
    std::atomic<std::uint64_t>& cell =
        board_.digests[static_cast<std::size_t>(number_) * kStepsMax +
                       static_cast<std::size_t>(one.number)];
    std::uint64_t before = 0;
    const std::uint64_t digest = digest_of(got.bytes());
    if (!cell.compare_exchange_strong(before, digest) && before != digest)
      return wrong("ranks hold different results");
  }
  return true;
}

}  // namespace leeway::programs
