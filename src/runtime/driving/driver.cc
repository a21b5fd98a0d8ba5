// The thread that drives, and one step of it.
#include "driving/driver.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "driving/channel.h"

namespace leeway::driving {
namespace {

constexpr Duration kBlockMax = std::chrono::seconds(1);

// Set when a callback on a background thread has destroyed that thread's own driver.
thread_local bool background_is_orphan = false;

}  // namespace

Result<std::shared_ptr<Driver>> Driver::start(TransportKind kind,
                                              std::unique_ptr<DatagramTransport> transport,
                                              const congestion::Settings& congestion,
                                              Layers layers) {
  if (layers.faults != nullptr) layers.lengths = nullptr;
  std::shared_ptr<Driver> driver(new Driver(kind, std::move(transport), congestion, layers));
  Driver* const self = driver.get();
  auto background = Thread::start("serve a transport",
                                  [self, weak = std::weak_ptr(driver)](const std::stop_token&) {
                                    self->drive_in_pauses(weak);
                                  });
  if (!background.ok()) return background.status();
  self->background_ = std::move(*background);
  self->on_exit_.emplace(self->background_.stop_source().get_token(),
                         [self] { self->role_.stop(); });
  return driver;
}

Driver::Driver(TransportKind kind, std::unique_ptr<DatagramTransport> transport,
               const congestion::Settings& congestion, const Layers& layers)
    : kind_(kind),
      layers_(layers),
      node_(congestion),
      transport_(std::move(transport)),
      received_(kReceiveBatch),
      role_(*transport_) {
  node_.wake_by([this] { transport_->wake(); });
  if (layers_.lengths == nullptr) return;
  node_.measure_sizes({.most = transport_->limits().datagram_bytes_max, .around = around()});
}

// Bytes that a seal adds to each datagram.
std::size_t Driver::around() const {
  return layers_.sealed == nullptr ? 0 : seal::kOverheadBytes;
}

Driver::~Driver() {
  on_exit_.reset();
  role_.stop();
  background_is_orphan = background_.is_this();
  background_.join();
  node_.wake_by({});  // the transport is destroyed before the node
}

void Driver::pace_with(Driver& first) {
  Session theirs(first);
  Session own(*this);
  (void)node_.pace_with(steady_now(), first.node_);
}

Result<CollectiveReport> Driver::wait(WorkState& work) {
  if (const Status status = await(work); !status.ok()) return status;
  return work.outcome();
}

bool Driver::wait_for(WorkState& work, Duration patience) {
  if (work.over() || patience.count() <= 0) return work.over();
  const Instant now = steady_now();
  (void)await(work, patience < Instant::infinite_future() - now ? now + patience
                                                                : Instant::infinite_future());
  return work.over();
}

Status Driver::await(WorkState& work, Instant until) {
  if (work.over()) return Status();
  const std::shared_ptr<Driver> driver = work.driver.lock();
  if (driver == nullptr) return Status();  // the operation was done before its driver was destroyed
  if (in_callback()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "wait: a callback must not wait, because the thread that calls it is the "
                         "one that brings operations about");
  }
  while (driver->role_.acquire_unless(work.done, until)) {
    if (driver->drive_until(work, until) || steady_now() >= until) break;
  }
  return Status();
}

std::size_t Driver::wait_any(std::span<WorkState* const> works) {
  const auto first_done = [&] {
    return static_cast<std::size_t>(
        std::find_if(works.begin(), works.end(),
                     [](const WorkState* work) { return work != nullptr && work->over(); }) -
        works.begin());
  };
  std::shared_ptr<Driver> driver;
  for (WorkState* const work : works) {
    if (work != nullptr && driver == nullptr) driver = work->driver.lock();
  }
  if (driver == nullptr || first_done() < works.size()) return first_done();
  // Another thread may complete a work, perhaps on another driver. That thread then ends this one's
  // sleep by interrupt().
  const auto any = std::make_shared<std::atomic<bool>>(false);
  for (WorkState* const work : works) {
    if (work == nullptr) continue;
    const auto tell = [any, weak = std::weak_ptr(driver)] {
      *any = true;
      if (const auto driving = weak.lock()) driving->interrupt(*any);
    };
    work->call_when_done(tell);
    if (const auto other = work->driver.lock(); other != nullptr && other != driver)
      other->role_.nudge();
  }
  while (driver->role_.acquire_unless(*any)) {
    const auto done = [&] { return any->load() || first_done() < works.size(); };
    if (driver->drive_until(done, Instant::infinite_future())) break;
  }
  return first_done();
}

void Driver::finish(WorkState& work) {
  std::vector<Callback> callbacks;
  work.publish(callbacks);
  if (const auto driver = work.driver.lock()) driver->interrupt(work.done);
  call(callbacks);
}

void Driver::help(WorkState& work) {
  const std::shared_ptr<Driver> driver = work.driver.lock();
  if (driver == nullptr) return;
  const Instant now = steady_now();
  if (!driver->role_.acquire_to_poll(now)) return;
  driver->step(now);
  driver->release();
}

// Begins and drives under one hold of the role, which saves a call two hand-overs. Sends the new
// operation's datagrams before the first look for arrivals: peers have them a system call earlier,
// and a 4 KiB all-reduce takes 14.6 us instead of 15.3 (2 ranks).
Status Driver::run(Channel& channel, const std::shared_ptr<WorkState>& work) {
  role_.acquire();
  const Instant now = steady_now();
  admit_started(now);
  channel.admit(now, work);
  (void)send(now);
  return drive_until(*work, Instant::infinite_future()) ? Status() : await(*work);
}

void Driver::end(const std::shared_ptr<WorkState>& work, const Status& status,
                 const protocol::Blame& blame) {
  if (const std::shared_ptr<Driver> driver = work->driver.lock())
    driver->take_up({.work = work, .outcome = status, .blame = blame});
}

void Driver::finish_later(const std::shared_ptr<WorkState>& work, const Status& status) {
  const std::shared_ptr<Driver> driver = work->driver.lock();
  if (driver == nullptr) return;
  driver->note({.work = work, .outcome = status, .of_channel = false});
  driver->ring();
}

// If another thread has the role, that thread finds the operation. It looks for started operations
// in each step, and once more when it has given up the role.
void Driver::take_up(Started started) {
  note(std::move(started));
  if (role_.acquire_if_free()) {
    step(steady_now());
    release();
    if (!role_.polled()) role_.nudge();
  } else if (blocked_) {
    transport_->wake();
  }
}

void Driver::note(Started started) {
  const std::lock_guard lock(started_mutex_);
  started_.push_back(std::move(started));
  any_started_ = true;
}

void Driver::admit_started(Instant now) {
  if (!any_started_) return;
  std::vector<Started> started;
  {
    const std::lock_guard lock(started_mutex_);
    started.swap(started_);
    any_started_ = false;
  }
  for (const Started& one : started) {
    if (one.channel != nullptr) {
      one.channel->admit(now, one.work);
    } else {
      end_started(now, one);
    }
  }
}

void Driver::end_started(Instant now, const Started& ending) {
  if (!ending.of_channel) {
    ending.work->request.finish(ending.outcome, now);
    ending.work->publish(callbacks_);
    return role_.announce(ending.work->done);
  }
  for (Channel* const channel : channels_) {
    const auto& active = channel->active_;
    if (std::find(active.begin(), active.end(), ending.work) != active.end())
      return channel->end(now, *ending.work, ending.outcome, ending.blame);
  }
}

void Driver::interrupt(const std::atomic<bool>& done) {
  role_.announce(done);
  transport_->wake();
}

bool Driver::run_until(const std::function<bool()>& done, Instant deadline) {
  bool finished = false;
  do {
    role_.acquire();
    finished = drive_until(done, deadline);
  } while (!finished && steady_now() < deadline);
  return finished;
}

bool Driver::drive_until(const WorkState& work, Instant deadline) {
  const auto done = [&work] { return work.done.load(std::memory_order_acquire); };
  return drive_until(done, deadline);
}

// The caller has the role. Gives the role back when `done` is true, time is up, another thread
// wants the role, or callbacks are due.
bool Driver::drive_until(const std::function<bool()>& done, Instant deadline) {
  Idle idle{steady_now()};
  bool finished = false;
  for (;;) {
    const Instant now = steady_now();
    const bool progress = step(now);
    finished = done();
    if (finished || now >= deadline) break;
    if (role_.wanted()) {
      release();
      sched_yield();
      return false;
    }
    if (!callbacks_.empty()) {
      release();
      return false;
    }
    if (progress) {
      idle = {now};
    } else {
      rest(now, deadline, idle);
    }
  }
  release();
  return finished;
}

// Gives back the role, and makes the callbacks of operations that ended while it was held.
void Driver::release() {
  std::vector<Callback> callbacks;
  callbacks.swap(callbacks_);
  role_.release();
  if (any_started_) role_.nudge();
  call(callbacks);
}

void Driver::ring() {
  rung_ = true;
  role_.nudge();
  if (blocked_) transport_->wake();
}

bool Driver::step(Instant now) {
  if (const Status& status = transport_->status(); !status.ok()) fail(now, status);
  admit_started(now);
  const bool received = receive(now);
  const bool rung = rung_.load(std::memory_order_relaxed) && rung_.exchange(false);
  if (rung) {
    for (Channel* const channel : channels_) node_.touch(*channel->member_);
  }
  const bool sent = send(now);
  for (Channel* const channel : channels_) channel->publish();
  if (now >= look_at_) [[unlikely]] {
    look(now);
  } else {
    unseen_ |= received || sent;
  }
  return received || sent || rung;
}

// Fails every operation at once with the status of the transport, which is dead.
void Driver::fail(Instant now, const Status& status) {
  node_.cancel_all(now, status);
  trains_.drop_all();
  for (Channel* const channel : channels_) channel->note(status);
}

bool Driver::send(Instant now) {
  node_.on_wake(now, trains_.released());
  const bool sent = trains_.send(now, node_, *transport_);
  if (!sent || layers_.lengths == nullptr) return sent;
  while (const auto refusal = layers_.lengths->take_refusal())
    node_.sizes().on_refused(now, refusal->to, refusal->bytes - around());
  return sent;
}

bool Driver::receive(Instant now) {
  const std::size_t count = transport_->receive(received_);
  while (const auto move = layers_.sealed == nullptr ? std::nullopt : layers_.sealed->poll_move()) {
    const std::size_t further = move->via == kNoRank ? 0 : seal::kRelayOverheadBytes;
    if (!move->same_host) node_.on_new_path(now, move->slot, move->via, further);
  }
  while (const auto share = layers_.sealed == nullptr ? std::nullopt : layers_.sealed->poll_share())
    node_.on_relay_share(now, share->relay, share->bytes_per_second);
  if (const std::uint64_t bytes = layers_.sealed == nullptr ? 0 : layers_.sealed->take_forwarded();
      bytes > 0)
    node_.note_forwarded(now, bytes);
  for (std::size_t i = 0; i < count; ++i)
    node_.on_datagram(now, received_[i].from, received_[i].bytes, received_[i].ecn);
  if (count > 0 && node_.wants_host_drops(now)) [[unlikely]] {
    node_.on_host_drops(now, transport_->counters().kernel_drops,
                        transport_->limits().receive_buffer_bytes);
  }
  return count > 0;
}

void Driver::rest(Instant now, Instant deadline, Idle& idle) {
  const Duration since = now - idle.since;
  const bool polled_little = idle.polls < kPolls && since < kPollsLast;
  if (spin_ == Duration(0) || (since >= spin_ && !polled_little)) return block(now, deadline);
  ++idle.polls;
  sched_yield();
}

void Driver::block(Instant now, Instant deadline) {
  Instant until = std::min({deadline, now + kBlockMax, node_.next_wake()});
  if (unseen_) until = std::min(until, look_at_);
  if (until <= now) return;
  const congestion::Uplink* const uplink = node_.uplink();
  spin_ = uplink != nullptr && uplink->all_far() ? Duration(0) : kSpin;
  if (layers_.sealed != nullptr) {
    layers_.sealed->set_uplink(uplink == nullptr ? 0 : uplink->pace().bits_per_second);
    layers_.sealed->set_busy(node_.busy());
  }
  blocked_ = true;
  if (!any_started_ && !rung_) transport_->wait(until - now);
  blocked_ = false;
}

// Sends the trains that the member has handed out, and waits until the transport no longer reads
// them. Returns false if it still does after `patience`.
bool Driver::flush(const collective::Member& member, Duration patience) {
  const Instant until = steady_now() + patience;
  for (;;) {
    const Instant now = steady_now();
    (void)trains_.send(now, node_, *transport_);
    if (member.trains_end() <= trains_.released()) return true;
    if (now >= until) return false;
    transport_->wait(std::min<Duration>(until - now, Duration(limits::kTickNs)));
  }
}

// Forgets all trains of all members, as if the network had lost them. Returns false if a device
// still reads one.
bool Driver::drop_trains() {
  if (transport_->borrowed() != 0) return false;
  trains_.drop_all();
  return true;
}

Status Driver::register_memory(ByteSpan memory) {
  if (forked()) return driving::forked();
  Session session(*this);
  return transport_->register_memory(memory);
}

void Driver::forget_memory(ByteSpan memory) {
  if (forked()) return;
  Session session(*this);
  transport_->forget_memory(memory);
}

// Serves the protocol while no caller drives: late peers' repair requests, probes, asynchronous
// operations.
void Driver::drive_in_pauses(const std::weak_ptr<Driver>& self) {
  std::vector<Callback> callbacks;
  while (role_.acquire_in_pause()) {
    Idle idle{steady_now()};
    while (!role_.recalled() && callbacks_.empty()) {
      const Instant now = steady_now();
      if (step(now)) {
        idle = {now};
      } else if (callbacks_.empty()) {  // callbacks must not wait for the next event
        rest(now, Instant::infinite_future(), idle);
      }
    }
    callbacks.swap(callbacks_);
    if (!callbacks.empty()) role_.nudge();  // no caller came back, so this thread goes on at once
    role_.release_to_callers();
    if (any_started_) role_.nudge();
    if (callbacks.empty()) continue;
    // Keeps the driver alive during the callbacks, because they may destroy its last communicator.
    std::shared_ptr<Driver> alive = self.lock();
    call(callbacks);
    callbacks.clear();
    alive.reset();
    if (background_is_orphan) return;
  }
}

}  // namespace leeway::driving
