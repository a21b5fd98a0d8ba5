#include "congestion/uplink.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace leeway::congestion {
namespace {

constexpr std::size_t kNoLink = SIZE_MAX;

// A lane waits for the lane that has the turn, but only for this part of the time that a quantum
// takes at the pace: a quarter. The bundle makes up for half a quantum's time, so the wait loses no
// capacity.
constexpr int kTurnPatience = 4;

}  // namespace

struct Uplink::Shared {
  struct Lane {
    std::function<void()> wake;
    bool idle = true;       // had nothing to send when it was open
    bool has_turn = false;  // open() returned true, and nothing was sent yet
    // True if the lane was woken for its turn and was not held back since. It is not woken again
    // meanwhile: a lane whose socket is full cannot use its turn, so waking it would change
    // nothing.
    bool told = false;
  };

  explicit Shared(std::unique_ptr<Controller> controller) : bundle(std::move(controller)) {}

  bool waits(std::size_t lane) const {
    return std::find(waiting.begin(), waiting.end(), lane) != waiting.end();
  }
  // Sets the bundle's held-back flag if any lane waits, because a report to another lane may have
  // cleared it.
  void remind() {
    if (!waiting.empty()) bundle.note_held_back();
  }

  std::mutex mutex;
  std::atomic<bool> by_many{false};  // set by the second lane; a single lane takes no lock
  UplinkBundle bundle;
  std::size_t links = 0;
  std::vector<Lane> lanes;
  std::vector<std::size_t> waiting;  // lanes that were held back; the first has the turn
  Instant latest{0};
};

// Takes the lock if there are several lanes. In that case it also moves `now` up to the latest time
// that any lane gave.
class Uplink::Guard {
 public:
  explicit Guard(Shared& shared) {
    if (shared.by_many.load(std::memory_order_relaxed)) lock_ = std::unique_lock(shared.mutex);
  }
  Guard(Shared& shared, Instant& now) : Guard(shared) {
    if (lock_) now = shared.latest = std::max(shared.latest, now);
  }
  bool many() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Wakes the other waiting lanes, on destruction, if the bundle now opens earlier than it would have
// on construction of this object.
class Uplink::Opening {
 public:
  Opening(Shared& shared, std::size_t lane, bool many)
      : shared_(shared), lane_(lane), many_(many), before_(shared.bundle.opens_at()) {
    if (many) shared.remind();
  }
  ~Opening() {
    if (!many_ || shared_.bundle.opens_at() >= before_) return;
    for (const std::size_t lane : shared_.waiting) {
      if (lane != lane_ && shared_.lanes[lane].wake) shared_.lanes[lane].wake();
    }
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  Shared& shared_;
  const std::size_t lane_;
  const bool many_;
  const Instant before_;
};

Uplink::Uplink(std::unique_ptr<Controller> controller)
    : shared_(std::make_shared<Shared>(std::move(controller))), lane_(0) {
  shared_->lanes.emplace_back();
}

Uplink::Uplink(Uplink* first)
    : shared_(first->shared_), lane_([&] {
        const std::lock_guard lock(first->shared_->mutex);
        first->shared_->by_many = true;
        first->shared_->lanes.emplace_back();
        return first->shared_->lanes.size() - 1;
      }()) {}

Uplink::~Uplink() {
  const Guard guard(*shared_);
  if (!guard.many()) return;
  for (const std::size_t link : links_) {
    if (link != kNoLink) shared_->bundle.begin_anew(shared_->latest, link);
  }
  std::erase(shared_->waiting, lane_);
  shared_->lanes[lane_] = {};
}

void Uplink::wake_by(std::function<void()> wake) {
  const Guard guard(*shared_);
  shared_->lanes[lane_].wake = std::move(wake);
}

void Uplink::make_link(std::size_t slot, std::size_t datagrams) {
  const Guard guard(*shared_);
  if (slot >= links_.size()) links_.resize(slot + 1, kNoLink);
  if (links_[slot] == kNoLink) links_[slot] = shared_->links++;
  shared_->bundle.make_link(links_[slot], datagrams);
}

bool Uplink::open(Instant now) {
  const Guard guard(*shared_, now);
  const UplinkBundle& bundle = shared_->bundle;
  if (!guard.many()) return bundle.open(now);
  const std::vector<std::size_t>& waiting = shared_->waiting;
  const bool mine = waiting.empty() || waiting.front() == lane_ ||
                    now >= bundle.opens_at() + bundle.quantum_time() / kTurnPatience;
  return shared_->lanes[lane_].has_turn = bundle.open(now) && mine;
}

std::size_t Uplink::quantum_bytes() const {
  const Guard guard(*shared_);
  return shared_->bundle.quantum_bytes();
}

void Uplink::note_held_back() {
  const Guard guard(*shared_);
  shared_->bundle.note_held_back();
  if (!guard.many()) return;
  shared_->lanes[lane_].idle = shared_->lanes[lane_].told = false;
  if (!shared_->waits(lane_)) shared_->waiting.push_back(lane_);
}

// The bundle counts as idle only if no lane has anything to send.
void Uplink::note_idle() {
  const Guard guard(*shared_);
  if (!guard.many()) return shared_->bundle.note_idle();
  std::erase(shared_->waiting, lane_);
  shared_->lanes[lane_].idle = true;
  shared_->lanes[lane_].has_turn = false;
  if (std::all_of(shared_->lanes.begin(), shared_->lanes.end(),
                  [](const Shared::Lane& lane) { return lane.idle; })) {
    shared_->bundle.note_idle();
  }
}

// Ends this lane's turn if it had one and now sent data. Control datagrams are sent without a turn,
// so they do not end it.
void Uplink::take_turn() {
  Shared::Lane& lane = shared_->lanes[lane_];
  lane.idle = false;
  if (std::exchange(lane.has_turn, false)) std::erase(shared_->waiting, lane_);
}

void Uplink::on_sent(Instant now, std::size_t slot, const Sent& sent, double share) {
  const Guard guard(*shared_, now);
  if (guard.many()) take_turn();
  shared_->bundle.on_sent(now, link_of(slot), sent, share);
}

void Uplink::on_group_sent(Instant now, std::size_t bytes) {
  const Guard guard(*shared_, now);
  if (guard.many()) take_turn();
  shared_->bundle.on_group_sent(now, bytes);
}

bool Uplink::asks(Instant now, std::size_t slot) const {
  const Guard guard(*shared_, now);
  return shared_->bundle.asks(now, link_of(slot));
}

void Uplink::on_asked(Instant now, std::size_t slot) {
  const Guard guard(*shared_, now);
  shared_->bundle.on_asked(now, link_of(slot));
}

std::uint32_t Uplink::datagrams_granted(std::size_t slot) const {
  const Guard guard(*shared_);
  return shared_->bundle.datagrams_granted(link_of(slot));
}

void Uplink::on_report(Instant now, std::size_t slot, const Arrivals& arrivals) {
  const Guard guard(*shared_, now);
  const Opening opening(*shared_, lane_, guard.many());
  shared_->bundle.on_report(now, link_of(slot), arrivals);
}

void Uplink::begin_anew(Instant now, std::size_t slot) {
  const Guard guard(*shared_, now);
  const Opening opening(*shared_, lane_, guard.many());
  if (slot < links_.size() && links_[slot] != kNoLink)
    shared_->bundle.begin_anew(now, links_[slot]);
}

void Uplink::on_wake(Instant now) {
  const Guard guard(*shared_, now);
  const Opening opening(*shared_, lane_, guard.many());
  shared_->bundle.on_wake(now);
  if (guard.many() && now >= turn_at()) shared_->lanes[lane_].told = true;
}

// Returns the time at which this lane may send what it held back. Returns infinite future if it
// held nothing back, or if only a report can open the bundle.
Instant Uplink::turn_at() const {
  const Instant opens_at = shared_->bundle.opens_at();
  if (!shared_->waits(lane_) || opens_at == Instant::infinite_future())
    return Instant::infinite_future();
  const bool first = shared_->waiting.front() == lane_;
  return opens_at + (first ? Duration(0) : shared_->bundle.quantum_time() / kTurnPatience);
}

Instant Uplink::next_wake() {
  const Guard guard(*shared_);
  UplinkBundle& bundle = shared_->bundle;
  if (!guard.many()) return bundle.next_wake();
  shared_->remind();
  const Instant at = bundle.watch_at();
  return shared_->lanes[lane_].told ? at : std::min(at, turn_at());
}

Pace Uplink::pace() const {
  const Guard guard(*shared_);
  return shared_->bundle.pace();
}

bool Uplink::all_far() const {
  const Guard guard(*shared_);
  return shared_->bundle.all_far();
}

std::uint64_t Uplink::in_flight_bytes() const {
  const Guard guard(*shared_);
  return shared_->bundle.in_flight_bytes();
}

LinkDelay Uplink::delay(std::size_t slot) const {
  const Guard guard(*shared_);
  if (slot >= links_.size() || links_[slot] == kNoLink) return {};
  return shared_->bundle.delay(links_[slot]);
}

double Uplink::noise() const {
  const Guard guard(*shared_);
  return shared_->bundle.controller().noise();
}

const UplinkBundle& Uplink::bundle() const {
  return shared_->bundle;
}

}  // namespace leeway::congestion
