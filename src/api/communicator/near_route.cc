#include "communicator/near_route.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "collective/operation_plan.h"
#include "driving/work_state.h"

namespace leeway::internal {
namespace {

// The arena numbers calls from 1, since 0 on a rank's page means that it has made no call yet.
// Places are numbered from 0.
std::uint64_t number_of(std::uint64_t place) {
  return place + 1;
}

std::uint64_t place_of(std::uint64_t number) {
  return number - 1;
}

// Limit on the arenas of this process, for all groups. Each takes 0.4 MiB of /dev/shm for each
// rank.
constexpr int kArenasMax = 16;
std::atomic<int> arenas{0};

// The route's thread ends after this time without work.
constexpr std::chrono::milliseconds kThreadLingers(100);

// Period at which deadlines of queued calls are checked while the current call goes by datagrams.
constexpr std::chrono::milliseconds kLooksEvery(20);

// Number of calls of look() in one wait (near::Surroundings) after which the wait counts as long.
constexpr int kLooksOfALongWait = 5;

Status ended(Rank self, const char* how) {
  return Status::error(StatusCode::kCancelled, "rank %u: communicator %s", unsigned{self}, how);
}

// Returns a spec for going on with the call on another route. Its deadline is the time that is left
// of the call's deadline. Texts still show the call's own number and deadline.
collective::OperationSpec rest_of(const collective::OperationSpec& spec, std::uint64_t number,
                                  Instant submitted) {
  collective::OperationSpec rest = spec;
  rest.whole = {.kind = spec.kind,
                .number = static_cast<std::uint32_t>(place_of(number)),
                .deadline = spec.options.delivery.deadline};
  Duration& deadline = rest.options.delivery.deadline;
  if (deadline <= no_deadline / 4)
    deadline = std::max<Duration>(Duration(1), submitted + deadline - driving::steady_now());
  return rest;
}

void conclude(WorkState& work, Result<CollectiveReport> outcome) {
  if (outcome.ok()) work.request.report = std::move(*outcome);
  work.request.finish(outcome.status(), driving::steady_now());
  driving::Driver::finish(work);
}

}  // namespace

NearRoute::NearRoute(near::ArenaFile file, Channels& parent, std::unique_ptr<Channels> side,
                     const Options& options)
    : file_(std::move(file)),
      parent_(parent),
      side_(std::move(side)),
      options_(options),
      generation_(fork_generation()),
      station_(file_.arena(),
               {.now = driving::steady_now, .look = [this](Rank& about) { return look(about); }}),
      caller_(station_, file_.folder(), near::file_name(file_.name())),
      order_(parent.order()) {
  ++arenas;
}

NearRoute::~NearRoute() {
  --arenas;
}

bool NearRoute::has_room() {
  return arenas < kArenasMax;
}

Result<CollectiveReport> NearRoute::run(const Spec& spec, Channel::Place /*place*/) {
  const Instant submitted = driving::steady_now();
  const std::uint64_t number = take_turn(spec);
  if (number == 0) return driving::Driver::wait(*enqueue(spec));
  auto outcome = perform(spec, number, submitted);
  end_turn();
  return outcome;
}

std::shared_ptr<WorkState> NearRoute::start(const Spec& spec, Channel::Place /*place*/) {
  return enqueue(spec);
}

void NearRoute::pass(std::uint64_t place) {
  // After abort() this rank's numbers differ from its peers' numbers for the same calls, so it
  // tells them no number.
  if (ended_ != nullptr) return;
  station_.go_elsewhere(number_of(place));
  if (current_ != nullptr) hold(*current_, current_number_);
  for (const Queued& queued : queue_) hold(queued.work->request.spec, queued.number);
}

// Holds the call's place on the routes other than memory, unless the place is held already. Call
// this function under the lock, in the order of the calls.
void NearRoute::hold(const Spec& spec, std::uint64_t number) {
  if (!held_.empty() && held_.back().number >= number) return;
  held_.push_back({number, parent_.hold_past_memory(spec, place_of(number))});
}

// Call it under the lock.
std::uint64_t NearRoute::take_number() {
  return number_of(order_->taken++);
}

// Returns the call's number, or 0 if other calls come first.
std::uint64_t NearRoute::take_turn(const Spec& spec) {
  const std::lock_guard lock(order_->mutex);
  if (!is_idle()) return 0;
  taken_ = true;
  current_ = &spec;
  return current_number_ = take_number();
}

void NearRoute::end_turn() {
  Held over;
  {
    const std::lock_guard lock(order_->mutex);
    taken_ = running_ = false;
    current_ = nullptr;
    if (!held_.empty() && held_.front().number == current_number_) {
      over = std::move(held_.front());
      held_.pop_front();
    }
  }
  turned_.notify_all();
  for (const auto& stand_in : over.stand_ins) driving::Driver::end(stand_in, Status());
}

std::shared_ptr<WorkState> NearRoute::enqueue(const Spec& spec) {
  auto work = new_work(spec);
  const char* refused = nullptr;
  bool serving = true;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(order_->mutex);
    refused = ended_;
    if (refused == nullptr) number = take_number();
    if (refused == nullptr && !serving_) serving = serving_ = begin_serving();
    if (!serving) station_.go_elsewhere(number);
    if (refused == nullptr && serving) queue_.push_back({work, number});
  }
  if (!serving) return parent_.start_past_memory(spec, place_of(number));
  turned_.notify_all();
  if (refused != nullptr) conclude(*work, ended(parent_.rank(), refused));
  return work;
}

std::shared_ptr<WorkState> NearRoute::new_work(const Spec& spec) const {
  auto work = std::make_shared<WorkState>(spec);
  work->driver = parent_.datagrams().driver();
  work->request.submitted = driving::steady_now();
  return work;
}

// Starts the thread, under the lock, with an empty queue. Returns false if no thread can be had.
bool NearRoute::begin_serving() {
  auto thread = Thread::start(
      "run calls over memory",
      [self = shared_from_this()](const std::stop_token& stop) { self->serve(stop); });
  if (!thread.ok()) return false;
  thread_.detach();  // the previous thread has nothing left to do, and holds this object
  thread_ = std::move(*thread);
  return true;
}

// Runs queued calls. A caller hears that its call is done only after the call's turn has ended,
// because the caller may then end the communicator, and with it this thread.
void NearRoute::serve(const std::stop_token& stop) {
  // exit() must leave no call running, because the program may free its tensors at any moment.
  const std::stop_callback on_stop(stop, [this] {
    {
      const std::lock_guard lock(order_->mutex);
      ended_ = driving::kAborted;
      if (running_) station_.abort(driving::kAborted);
    }
    turned_.notify_all();
  });
  std::unique_lock lock(order_->mutex);
  while (true) {
    const bool due = turned_.wait_for(lock, kThreadLingers, [&] {
      return closed_ || stop.stop_requested() || (!taken_ && !queue_.empty());
    });
    if (closed_ || stop.stop_requested()) break;
    if (!due && !queue_.empty()) continue;  // another thread's call is long
    if (!due) {
      serving_ = false;
      return;
    }
    const Queued queued = std::move(queue_.front());
    queue_.pop_front();
    taken_ = running_ = true;
    current_ = &queued.work->request.spec;
    current_number_ = queued.number;
    lock.unlock();
    auto outcome = perform(queued.work->request.spec, queued.number, queued.work->request.submitted,
                           queued.overdue);
    end_turn();
    if (queued.overdue.ok()) conclude(*queued.work, std::move(outcome));
    lock.lock();
  }
  lock.unlock();
  cancel_queued();
}

// Runs a call in its turn. `overdue` is an error if the call's deadline passed in the queue. An
// overdue call is only refused, so that peers hear of it.
Result<CollectiveReport> NearRoute::perform(const Spec& spec, std::uint64_t number,
                                            Instant submitted, const Status& overdue) {
  CollectiveReport report;
  const StatusCode state = parent_.datagrams().state();
  near::Caller::Outcome outcome;
  if (!overdue.ok()) {
    outcome = caller_.refuse(spec, number, overdue, kNoRank);
  } else if (state == StatusCode::kOk) {
    outcome = caller_.run(spec, number, submitted, report);
  } else {  // for example, a peer is dead
    Rank about = kNoRank;
    const Status why = parent_.datagrams().status(&about);
    outcome = caller_.refuse(spec, number, why, about);
  }
  stop_looking();
  // Some rank cannot do this call in memory. All ranks take it to a communicator that has only such
  // calls, so that such calls come in the same order on all ranks.
  if (outcome.way == near::Caller::Way::apart) return perform_over(*side_, spec, number, submitted);
  if (outcome.way == near::Caller::Way::elsewhere) return follow(spec, number, submitted);
  auto result = outcome.status.ok() ? Result<CollectiveReport>(std::move(report))
                                    : Result<CollectiveReport>(outcome.status);
  if (!result.ok() && station_.is_given_up()) parent_.datagrams().ask_whether_given_up();
  tell_observers(spec, submitted, result);
  return result;
}

// Makes the call by datagrams, because some rank makes its call of this number by datagrams. If the
// calls of the two ranks differ, the datagrams tell both ranks. A stand-in that held this call's
// place may have heard of the difference already.
Result<CollectiveReport> NearRoute::follow(const Spec& spec, std::uint64_t number,
                                           Instant submitted) {
  StandIns stand_ins;
  {
    const std::lock_guard lock(order_->mutex);
    hold(spec, number);  // later calls may start there before this one does
    if (!held_.empty()) stand_ins = held_.front().stand_ins;
  }
  auto outcome = perform_over(parent_, spec, number, submitted);
  for (const auto& stand_in : stand_ins) {
    if (auto heard = driving::Driver::wait(*stand_in); !heard.ok()) return heard;
  }
  return outcome;
}

// Tells metrics and the trace that a call is over. The driver must stand still for that, so this
// function does nothing if the options ask for neither metrics nor a trace.
void NearRoute::tell_observers(const Spec& spec, Instant submitted,
                               const Result<CollectiveReport>& outcome) {
  if (options_.metrics.empty() && options_.trace.empty()) return;
  collective::Request request{.spec = spec};
  request.submitted = submitted;
  if (outcome.ok()) request.report = *outcome;
  request.finish(outcome.status(), driving::steady_now());
  parent_.datagrams().note_done(request);
}

Result<CollectiveReport> NearRoute::perform_over(Channels& channels, const Spec& spec,
                                                 std::uint64_t number, Instant submitted) {
  const auto work = channels.start_past_memory(rest_of(spec, number, submitted), place_of(number));
  while (!driving::Driver::wait_for(*work, kLooksEvery)) end_overdue();
  return std::move(*work).outcome();
}

// Ends queued calls whose deadlines have passed. The calls stay in the queue, because peers must
// hear of each failure in the call's turn.
void NearRoute::end_overdue() {
  const std::lock_guard lock(order_->mutex);
  const Instant now = driving::steady_now();
  for (Queued& queued : queue_) {
    const collective::Request& request = queued.work->request;
    const Duration length = request.spec.options.delivery.deadline;
    if (!queued.overdue.ok() || length > no_deadline / 4 || now < request.submitted + length)
      continue;
    queued.overdue = station_.overdue_behind({.name = to_string(request.spec.kind),
                                              .call = queued.number,
                                              .deadline = request.submitted + length,
                                              .length = length});
    driving::Driver::finish_later(queued.work, queued.overdue);
  }
}

// In a long wait the channel of the datagrams finds out which peers are dead, as for its own calls.
Status NearRoute::look(Rank& about) {
  end_overdue();
  Channel& channel = parent_.datagrams();
  if (++looks_ < kLooksOfALongWait) return Status();
  if (looks_ == kLooksOfALongWait) channel.watch_peers(true);
  return channel.state() == StatusCode::kOk ? Status() : channel.status(&about);
}

void NearRoute::stop_looking() {
  if (std::exchange(looks_, 0) >= kLooksOfALongWait) parent_.datagrams().watch_peers(false);
}

Result<std::shared_ptr<near::Region>> NearRoute::allocate(std::size_t bytes) {
  if (generation_ != fork_generation()) return driving::forked();
  std::uint64_t number = 0;
  {
    std::unique_lock lock(order_->mutex);
    turned_.wait(lock, [this] { return is_idle(); });
    if (ended_ != nullptr) return ended(parent_.rank(), ended_);
    taken_ = true;
    number = current_number_ = take_number();
  }
  auto region = caller_.allocate(bytes, number, driving::steady_now(), options_.join_timeout);
  stop_looking();
  end_turn();
  return region;
}

void NearRoute::cancel_queued() {
  std::deque<Queued> queued;
  std::deque<Held> held;
  const char* how = driving::kDestroyed;
  {
    const std::lock_guard lock(order_->mutex);
    if (queue_.empty()) return;  // the communicator may be gone
    queued.swap(queue_);
    const auto first = std::find_if(held_.begin(), held_.end(), [&](const Held& one) {
      return one.number >= queued.front().number;
    });
    held.assign(std::make_move_iterator(first), std::make_move_iterator(held_.end()));
    held_.erase(first, held_.end());
    if (ended_ != nullptr) how = ended_;
  }
  const Status status = ended(parent_.rank(), how);
  for (const Held& one : held) {
    for (const auto& stand_in : one.stand_ins) driving::Driver::end(stand_in, status);
  }
  for (const Queued& one : queued) {
    if (one.overdue.ok()) conclude(*one.work, status);
  }
}

void NearRoute::abort(const char* how) {
  if (generation_ != fork_generation()) return;
  {
    const std::lock_guard lock(order_->mutex);
    ended_ = how;
  }
  station_.abort(how);
  side_->abort();
  parent_.abort_past_memory(how);  // the current call may have gone there
  cancel_queued();
  std::unique_lock lock(order_->mutex);
  turned_.wait(lock, [this] { return !taken_; });
}

// Cancels calls as abort() does. The datagrams' channels stay, for peers that still lack data of
// calls that are done.
void NearRoute::cancel_calls() {
  {
    const std::lock_guard lock(order_->mutex);
    ended_ = driving::kDestroyed;
  }
  station_.abort(driving::kDestroyed);
  cancel_queued();
  std::unique_lock lock(order_->mutex);
  do {  // the current call may go to a channel only now
    lock.unlock();
    side_->datagrams().cancel_awaited(driving::kDestroyed);
    parent_.datagrams().cancel_awaited(driving::kDestroyed);
    lock.lock();
  } while (!turned_.wait_for(lock, kLooksEvery, [this] { return !taken_; }));
}

void NearRoute::add_counters(Channel::Counters& rows) {
  const near::CallerCounters& own = caller_.counters();
  rows.insert(rows.end(), {{"near_calls", own.calls},
                           {"near_direct", own.direct},
                           {"near_apart", own.apart},
                           {"near_elsewhere", own.elsewhere},
                           {"near_failed", own.failed},
                           {"near_bytes_copied", own.bytes_copied}});
}

void NearRoute::close(std::vector<std::function<void()>>& closing) {
  if (generation_ != fork_generation()) {  // the thread is the parent's
    (void)new (std::nothrow) std::shared_ptr<NearRoute>(shared_from_this());
    return;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): on purpose
  }
  if (!driving::in_callback()) {
    const Duration patience = parent_.datagrams().closing_patience();
    std::unique_lock lock(order_->mutex);
    const bool ended = turned_.wait_for(lock, patience, [this] { return is_idle(); });
    lock.unlock();
    if (!ended) cancel_calls();
  } else {
    abort(driving::kDestroyed);
  }
  if (!station_.aborted()) station_.leave(near::Gone::left);
  caller_.close();
  {
    const std::lock_guard lock(order_->mutex);
    closed_ = true;
  }
  turned_.notify_all();
  thread_.join();
  closing.emplace_back([this] { side_.reset(); });
}

}  // namespace leeway::internal
