#include "communicator/datagram_route.h"

#include <mutex>
#include <string>

#include "base/philox.h"
#include "collective/sliced_call.h"

namespace leeway::internal {
namespace {

using collective::OperationSpec;

// Stream tag of the keyed hash (base/philox.h) that seeds injected faults of lanes.
constexpr std::uint32_t kLaneFaultStream = 0x4C000000;

// Least bytes of a slice. At 25 Gb/s 1 MiB takes a third of a millisecond. That is ten times the
// cost of starting a slice on another thread and hearing that it is done.
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;

// A call in slices, in progress. If one slice fails, the call fails and the other slices end.
struct Call {
  Call(const OperationSpec& spec, int size, std::size_t slices)
      : work(std::make_shared<WorkState>(spec)),
        sliced(spec, size, slices),
        parts(slices),
        left(slices) {}

  void on_begun(std::size_t slice, const std::shared_ptr<WorkState>& part) {
    {
      const std::lock_guard lock(mutex);
      parts[slice] = part;
      if (failure.ok()) return;
    }
    driving::Driver::end(part, failure, blame);
  }

  // Called when a slice is done, by the thread of its lane.
  void on_done(const WorkState& part) {
    std::vector<std::shared_ptr<WorkState>> others;
    bool last = false;
    {
      const std::lock_guard lock(mutex);
      if (!part.request.status.ok() && failure.ok()) {
        failure = part.request.status;
        if (failure.code() != StatusCode::kMismatch) blame = part.request.blame;
        others = parts;
      }
      last = --left == 0;
    }
    if (last) return finish();
    for (const auto& other : others) {
      if (other != nullptr && other.get() != &part) driving::Driver::end(other, failure, blame);
    }
  }

  void finish() {
    const Instant now = driving::steady_now();
    if (failure.ok()) {
      std::vector<const collective::Request*> requests;
      for (const auto& one : parts) requests.push_back(&one->request);
      sliced.finish(requests, work->request, now);
    } else {
      work->request.finish(failure, now);
    }
    driving::Driver::finish(*work);
  }

  std::shared_ptr<WorkState> work;
  collective::SlicedCall sliced;
  std::mutex mutex;
  std::vector<std::shared_ptr<WorkState>> parts;  // null until the slice has begun
  std::size_t left;
  Status failure;  // the first failure; it is never replaced
  protocol::Blame blame;
};

}  // namespace

Options options_of_lane(const Options& options, int lane) {
  Options own = options;
  own.communicator_name += "/lane" + std::to_string(lane);
  if (own.port != 0) own.port = static_cast<std::uint16_t>(own.port + lane);
  own.faults.seed =
      keyed_hash(own.faults.seed, static_cast<std::uint32_t>(lane), kLaneFaultStream, 0, 0);
  return own;
}

void DatagramRoute::add(std::vector<std::unique_ptr<Channel>> further) {
  for (auto& lane : further) lanes_.push_back(std::move(lane));
}

// Returns the number of slices into which all ranks cut this call. A call with wrong arguments goes
// whole to lane 0, which tells peers that the call is refused.
std::size_t DatagramRoute::slices(const OperationSpec& spec, Channel::Place place) const {
  const protocol::EndpointConfig& config = first().config();
  if (lanes_.size() == 1 || !place || !collective::validate(spec, config.self, config.size).ok())
    return 1;
  return collective::SlicedCall::slices(spec, config.size, lanes_.size(), kSliceBytes);
}

Route::StandIns DatagramRoute::hold(const OperationSpec& spec, Channel::Place place) {
  const std::size_t parts = slices(spec, place);
  if (parts <= 1) return {first().hold(spec, place)};
  const collective::SlicedCall sliced(spec, first().config().size, parts);
  StandIns stand_ins;
  for (std::size_t i = 0; i < parts; ++i)
    stand_ins.push_back(lanes_[i]->hold(sliced.slice(i), place));
  return stand_ins;
}

std::shared_ptr<WorkState> DatagramRoute::start(const OperationSpec& spec, Channel::Place place) {
  const std::size_t parts = slices(spec, place);
  if (parts <= 1) return first().start(spec, place);
  const auto call = std::make_shared<Call>(spec, first().config().size, parts);
  std::shared_ptr<WorkState> work = call->work;
  work->driver = first().driver();
  work->request.submitted = driving::steady_now();
  // Lane 0 begins last, because the caller may drive it next.
  for (std::size_t i = parts; i-- > 0;) {
    const auto part = lanes_[i]->start(call->sliced.slice(i), place);
    call->on_begun(i, part);
    part->call_when_done([call, part] { call->on_done(*part); });
  }
  return work;
}

Result<CollectiveReport> DatagramRoute::run(const OperationSpec& spec, Channel::Place place) {
  if (slices(spec, place) <= 1) return first().run(spec, place);
  return Route::run(spec, place);
}

void DatagramRoute::abort(const char* how) {
  for (const auto& lane : lanes_) lane->abort(how);
}

// In a callback, a channel's destructor ends its calls at once. The slices of these calls on
// further lanes must have ended before that, so those lanes are aborted first.
void DatagramRoute::close(std::vector<std::function<void()>>& closing) {
  for (std::size_t i = lanes_.size(); i-- > 0;) {
    if (i > 0 && driving::in_callback()) lanes_[i]->abort(driving::kDestroyed);
    closing.emplace_back([&lane = lanes_[i]] { lane.reset(); });
  }
}

void DatagramRoute::add_counters(Channel::Counters& rows) {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i]->add_counters(i == 0 ? "" : "lane" + std::to_string(i) + "_", rows);
}

StatusCode DatagramRoute::state() const {
  for (const auto& lane : lanes_) {
    if (const StatusCode state = lane->state(); state != StatusCode::kOk) return state;
  }
  return StatusCode::kOk;
}

Status DatagramRoute::status() const {
  for (const auto& lane : lanes_) {
    if (const Status status = lane->status(); !status.ok()) return status;
  }
  return Status();
}

bool DatagramRoute::peer_left() const {
  for (const auto& lane : lanes_) {
    if (lane->peer_left()) return true;
  }
  return false;
}

}  // namespace leeway::internal
