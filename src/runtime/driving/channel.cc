#include "driving/channel.h"

#include <algorithm>
#include <new>
#include <utility>

namespace leeway::driving {
namespace {

// A channel that is destroyed while operations run gives them kPatienceTimeouts time-outs of the
// slowest link to end.
constexpr int kPatienceTimeouts = 64;

// A channel that ends sends peers the agreed size of datagrams, once per time-out of the slowest
// link. It stops after kTellTimeouts time-outs, or after kTellMax if that is sooner, because a peer
// that has left does not answer.
constexpr int kTellTimeouts = 8;
constexpr Duration kTellMax = std::chrono::seconds(1);

// How long trains of an aborted operation may take to leave the transport's queue before they are
// dropped.
constexpr Duration kAbortPatience = std::chrono::milliseconds(50);

// How long abort() waits, after kAbortPatience, for a device that still reads trains.
constexpr Duration kDevicePatience = std::chrono::seconds(1);

}  // namespace

Channel::Channel(std::shared_ptr<Driver> driver, const protocol::EndpointConfig& config,
                 std::vector<Rank> slots, std::string name)
    : driver_(std::move(driver)),
      config_(config),
      slots_(std::move(slots)),
      name_(std::move(name)),
      kind_(driver_->kind()) {
  Driver::Session session(*driver_);
  look_at_links(session);
  member_ = &session.node().join(steady_now(), config_, slots_, this);
  driver_->channels_.push_back(this);
}

Channel::~Channel() {
  if (forked()) {
    // The driver's threads exist only in the parent, and one of them may have been changing the
    // driver's memory at the fork. So the child keeps the driver for ever and does not touch it.
    (void)new (std::nothrow) std::shared_ptr<Driver>(driver_);
    return;
  }
  if (in_callback()) abort(kDestroyed);
  if (state() != StatusCode::kCancelled) leave();
  quit();
}

collective::Engine& Channel::engine() {
  driver_->node_.touch(*member_);
  return member_->engine();
}

std::shared_ptr<WorkState> Channel::work_of(const collective::OperationSpec& spec,
                                            Place place) const {
  auto work = std::make_shared<WorkState>(spec);
  work->request.place = place;
  work->driver = driver_;
  if (forked()) {
    work->request.status = driving::forked();
    work->done = true;
  }
  return work;
}

Result<CollectiveReport> Channel::run(const collective::OperationSpec& spec, Place place) {
  const auto work = work_of(spec, place);
  if (!work->done) {
    if (const Status status = driver_->run(*this, work); !status.ok()) return status;
  }
  return std::move(*work).outcome();
}

std::shared_ptr<WorkState> Channel::submit(const collective::OperationSpec& spec, Place place) {
  auto work = work_of(spec, place);
  if (work->done) return work;
  Driver::Session session(*driver_);
  admit(steady_now(), work);
  session.pump();
  return work;
}

std::shared_ptr<WorkState> Channel::start(const collective::OperationSpec& spec, Place place) {
  if (spec.elsewhere() && !spec.stands_in) {  // its source and sink begin within this call
    auto work = submit(spec, place);
    ring();
    return work;
  }
  auto work = work_of(spec, place);
  if (!work->done) driver_->take_up({.channel = this, .work = work});
  return work;
}

std::shared_ptr<WorkState> Channel::hold(collective::OperationSpec spec, Place place) {
  spec.stands_in = true;
  spec.options.delivery.deadline = no_deadline;
  auto work = work_of(spec, place);
  if (!work->done) driver_->note({.channel = this, .work = work});
  return work;
}

void Channel::admit(Instant now, const std::shared_ptr<WorkState>& work) {
  work->request.index = active_.size();
  work->request.finished = &finished_;
  active_.push_back(work);
  if (!failure_.ok()) return work->request.finish(failure_, now);
  // The engine does not begin the operation while a device still reads trains of this channel's
  // earlier operations, because the new operation may write to their memory.
  member_->engine().submit(now, work->request,
                           member_->trains_end() <= driver_->trains_.released());
  driver_->node_.touch(*member_);
}

void Channel::end(Instant now, WorkState& work, const Status& status,
                  const protocol::Blame& blame) {
  member_->engine().end(now, work.request, status, blame);
  driver_->node_.touch(*member_);
}

void Channel::watch_peers(bool on) {
  Driver::Session session(*driver_);
  endpoint().watch_all(steady_now(), on);
  session.node().touch(*member_);
}

void Channel::note_done(const collective::Request& request) {
  const Driver::Session session(*driver_);
  if (driver_->observer_ == nullptr) return;
  driver_->observer_->on_done(name_, request);
  driver_->look_at_ = {0};  // the caller may end the process after this
}

void Channel::ring() {
  if (!forked()) driver_->ring();
}

void Channel::on_allocated(ByteSpan memory) {
  (void)driver_->transport_->register_memory(memory);
  memory_.push_back(memory);
}

void Channel::before_freed(ByteSpan memory) {
  driver_->transport_->forget_memory(memory);
  std::erase_if(memory_, [&](ByteSpan known) { return known.data() == memory.data(); });
}

void Channel::publish() {
  const protocol::Endpoint& endpoint = this->endpoint();
  if (!endpoint.liveness().given_up().ok()) note(endpoint.liveness().given_up());
  if (!endpoint.liveness().first_death().ok())
    note(endpoint.liveness().first_death(), endpoint.liveness().first_dead());
  if (endpoint.liveness().any_gone()) peer_left_.store(true, std::memory_order_release);
  if (finished_.empty() || member_->trains_end() > driver_->trains_.released()) return;
  for (const collective::Request* request : finished_) {
    active_.back()->request.index = request->index;
    std::swap(active_[request->index], active_.back());
    const std::shared_ptr<WorkState> work = std::move(active_.back());
    active_.pop_back();
    // A stand-in is not reported: the route that its call takes reports the call (note_done()).
    if (driver_->observer_ != nullptr && !work->request.spec.stands_in)
      driver_->observer_->on_done(name_, work->request);
    work->publish(driver_->callbacks_);
    driver_->role_.announce(work->done);
  }
  finished_.clear();
}

void Channel::note(const Status& status, Rank about) {
  if (status.ok() || state_.load(std::memory_order_relaxed) != StatusCode::kOk) return;
  why_ = status;
  about_ = about;
  // Makes the next step take a snapshot, because the caller may end the process after this.
  if (driver_->observer_ != nullptr) driver_->look_at_ = {0};
  state_.store(status.code(), std::memory_order_release);
}

Status Channel::status(Rank* about) {
  if (state() == StatusCode::kOk) return Status();
  if (forked()) return driving::forked();
  Driver::Session session(*driver_);
  if (about != nullptr) *about = about_;
  return why_;
}

void Channel::abort(const char* how) {
  if (forked() || state() == StatusCode::kCancelled) return;
  Driver::Session session(*driver_);
  if (!failure_.ok()) return;
  failure_ = why_ = cancelled(how);
  state_.store(StatusCode::kCancelled, std::memory_order_release);
  const Instant now = steady_now();
  member_->engine().cancel(now, failure_);
  endpoint().say_goodbye(now);
  session.node().touch(*member_);
  session.node().on_wake(now, driver_->trains_.released());
  if (!driver_->flush(*member_, kAbortPatience) && !driver_->drop_trains())
    (void)driver_->flush(*member_, kDevicePatience);
  publish();
}

void Channel::cancel_awaited(const char* how) {
  if (forked()) return;
  Driver::Session session(*driver_);
  member_->engine().cancel(steady_now(), cancelled(how), protocol::Cancelled::awaited);
  session.node().touch(*member_);
  session.pump();
}

Status Channel::cancelled(const char* how) const {
  return Status::error(StatusCode::kCancelled, "rank %u: communicator %s", config().self, how);
}

Duration Channel::closing_patience() {
  Driver::Session session(*driver_);
  return kPatienceTimeouts * endpoint().state().slowest_timeout();
}

void Channel::leave() {
  const auto at_peace = [this](Duration patience) {
    return driver_->run_until([this] { return active_.empty(); }, steady_now() + patience);
  };
  const bool finished = at_peace(closing_patience());
  tell_size();
  {
    Driver::Session session(*driver_);
    const Instant now = steady_now();
    if (!finished) {
      member_->engine().cancel(now, cancelled(kDestroyed), protocol::Cancelled::awaited);
    }
    endpoint().leave(now);
    session.node().touch(*member_);
  }
  const auto left = [&] { return endpoint().left() || !driver_->transport_->status().ok(); };
  driver_->run_until(left, Instant::infinite_future());
}

// Tells peers this rank's size of datagrams once more, because earlier datagrams with the size may
// be lost. A peer that does not know all ranks' sizes is still making its communicator, and only
// this rank can tell it this size.
void Channel::tell_size() {
  const Duration patience = closing_patience() / kPatienceTimeouts * kTellTimeouts;
  const Instant deadline = steady_now() + std::min(patience, kTellMax);
  const auto known = [this] { return member_->all_know_size(); };
  while (steady_now() < deadline) {
    Duration pause{0};
    {
      Driver::Session session(*driver_);
      if (known()) return;
      session.node().sizes().tell(*member_);
      session.node().touch(*member_);
      pause = endpoint().state().slowest_timeout();
    }
    driver_->run_until(known, std::min(deadline, steady_now() + pause));
  }
}

// Makes the node and the driver forget this channel's member. If a device still reads the member's
// memory, the driver keeps the member.
void Channel::quit() {
  Driver::Session session(*driver_);
  const bool free = driver_->flush(*member_, Duration(limits::kTickNs)) || driver_->drop_trains() ||
                    driver_->flush(*member_, kDevicePatience);
  publish();
  std::erase(driver_->channels_, this);
  std::unique_ptr<collective::Member> member = session.node().part(*member_);
  if (!free) return driver_->former_.push_back(std::move(member));
  for (const ByteSpan memory : memory_) driver_->transport_->forget_memory(memory);
}

}  // namespace leeway::driving
